"""Which random words are the bits of which draw, how work is cut into blocks, and what stands where in an array.

Compiled loops read these numbers, and so do the definitions in integers and the mechanisms that call the loops. They
are plain numbers: nothing here imports numba or numpy. A change of a stream or of a block changes what is drawn.
"""

# --- numbers that proofs and loops share

U = 2.0**-53  # the unit roundoff
LN2 = 0.6931471805599453  # ln 2, to nearest
LOG2_E = 1.4426950408889634  # 1 / ln 2, to nearest, which is below it
UNDECIDED = float("nan")  # of a draw or a coin: float64 leaves it open, and more bits or integers resolve it

# --- noise: fastdp/mechanisms/noise.md, "Bits"

SHORT_BITS, MEDIUM_EXTRA, LONG_EXTRA, COIN_BITS = 31, 16, 32, 16  # first bits of U, more for large scales; of a coin
SHORT_UP_TO, MEDIUM_UP_TO = 2.0**15, 2.0**31  # scales: above them escalations cost more than the words
U_STREAM, U_EXTRA_STREAM, COIN_STREAM, U_MORE_STREAM, COIN_MORE_STREAM = 0, 1, 2, 3, 4

LAPLACE_BLOCK = 1024  # draws that share the buffers
GAUSSIAN_BLOCK = 2208  # draws that share a run of proposals: 5 batches, nearly always
GAUSSIAN_BATCH = 512  # proposals made at a time
PROPOSALS = 1 << 20  # proposals of a block, as far as words are set aside: 2,560 are needed

# The law of discrete Laplace noise, float64[5]: the scale s, -s ln((1 + q) / 2) as a sum of two floats, and what is the
# same for all draws in the error bounds of the first and the second level (fastdp/mechanisms/noise.md, lemmas 2 and 3)
LAPLACE_LAW = 5
LAPLACE_SCALE, LAPLACE_OFFSET, LAPLACE_OFFSET_LOW, LAPLACE_ERROR, LAPLACE_ERROR_PAIR = range(LAPLACE_LAW)

# The law of discrete Gaussian noise, float64[15]. With a, t, T, A, x0 as in fastdp/mechanisms/noise.md, lemma 4:
GAUSSIAN_LAW = 15
(
    BODY,  # a
    TAIL,  # t
    START,  # a + t ln(T / A), as a sum of two floats
    START_LOW,
    MASS,  # A
    MASS_LOW,
    TAIL_MASS,  # T
    TAIL_MASS_LOW,
    PEAK,  # x0
    CURVATURE,  # 1 / (2 sigma^2)
    ERROR,  # of a proposal, what is the same for all of them
    ERROR_OF_CELL,  # and what is added per 1 / U
    COIN_ERROR,  # of an acceptance probability
    COIN_ERROR_PAIR,  # and of the second level
    ERROR_PAIR,  # of a proposal at the second level, per unit of 1 + |ln U|
) = range(GAUSSIAN_LAW)

# --- words: words.py

GROUP_HALVES = 256  # 32-bit words that are made together
CHACHA20_KEY, AES_KEY = 8, 9  # 32-bit words of a key
SCHEDULE = 60  # and of the round keys of AES-256
AES_MARK = 0x36354541  # the ninth: "AE56", as bytes

# --- selection: fastdp/mechanisms/selection.md, "Bits"

CANDIDATE_BLOCK = 2048  # candidates that share the buffers, and a weight
CHUNK_BLOCKS = 128
CANDIDATE_CHUNK = CHUNK_BLOCKS * CANDIDATE_BLOCK  # candidates of one call of select_gumbel_into
OPEN_LEVEL = 64  # of a block: the weights of blocks further down than this count alike
SLACK = 8 * U  # a logarithm L is off by at most SLACK (64 + |L|): selection.md, lemmas 2 and 3

CANDIDATE_STREAM, CANDIDATE_MORE_STREAM = 0, 1  # of Gumbel-max and permute-and-flip
PROPOSAL_STREAM, PROPOSAL_COIN_STREAM = 0, 1  # of buckets

HIGH, LOW = 0, 1  # rows of `sums`: integers of 128 bits
PROPOSED_BLOCK, PROPOSED_REST, PROPOSED_COIN, PROPOSED_NUMBER = range(4)  # rows of `proposals`
MEMBER, DOUBLINGS, VERDICT = range(3)  # rows of `outcomes`
LOG, ARRIVAL = 0, 1  # rows of `times`: ln E, and ln E + eta (top - score)

# --- sums over cells and records

LANES = 8  # float64 side by side: fills AVX-512 registers
MOST_SUMMED = 4096  # records between two moves of sums to int64: 2^41 times as many stay exact in float64

# --- noise for running sums: fastdp/answering/running_sums.md

HISTORY_BITS = 11  # of the weights' unit
