"""fastdp.connect.smartnoise against smartnoise-synth: registered, fits, samples, charges, and what it refuses."""

import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest

pytest.importorskip("snsynth", reason="make test-peers brings smartnoise-synth")

import pandas as pd
from snsynth import Synthesizer, TableTransformer
from snsynth.transform import (
    AnonymizationTransformer,
    BinTransformer,
    ChainTransformer,
    ClampTransformer,
    DropTransformer,
    LabelTransformer,
    LogTransformer,
    NoTransformer,
)

import fastdp
from fastdp.connect.smartnoise import NAME, MWEMSynthesizer
from tests.conftest import Watched

DOMAIN = fastdp.Domain(sex=["f", "m"], age=4, region=["n", "s", "w"])


def seeded(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        return fastdp.Randomness(seed=seed)


def people(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n, p=[0.7, 0.3])
    return pd.DataFrame({
        "sex": sex,
        "age": np.where((sex == "f") & (rng.random(n) < 0.8), 1, rng.integers(4, size=n)),
        "region": rng.choice(["n", "s", "w"], n, p=[0.5, 0.4, 0.1]),
    })  # fmt: skip


def binary(n, d, seed=0):
    rng = np.random.default_rng(seed)
    common = rng.random((n, 1)) < 0.5
    return ((rng.random((n, d)) < 0.2) ^ common).astype(int)


def create(epsilon=3.0, **options):
    return Synthesizer.create(NAME, epsilon=epsilon, **options)


# --- as smartnoise sees it


def test_it_is_registered_beside_the_others():
    names = Synthesizer.list_synthesizers()
    assert {NAME, "mwem", "mst", "aim"} <= set(names)
    assert names.count(NAME) == 1
    assert type(create()) is MWEMSynthesizer
    assert type(Synthesizer.create(MWEMSynthesizer, epsilon=1)) is MWEMSynthesizer
    assert type(MWEMSynthesizer.create(epsilon=1)) is MWEMSynthesizer
    assert issubclass(MWEMSynthesizer, Synthesizer)


def test_importing_smartnoise_alone_does_not_register_it(run_python):
    assert run_python(
        "import warnings; warnings.simplefilter('ignore')\n"
        "from snsynth import Synthesizer\n"
        "print('fastdp-mwem' in Synthesizer.list_synthesizers())\n"
        "import fastdp.connect.smartnoise\n"
        "print('fastdp-mwem' in Synthesizer.list_synthesizers())\n"
    ).split() == ["False", "True"]


@pytest.mark.parametrize("d", [16, 20])
def test_it_runs_where_the_original_stops(d):
    data = binary(10_000, d)
    synth = create(domain=fastdp.Domain.binary(d), rng=seeded(d), rounds=12)
    synth.fit(data)
    made = synth.sample(10_000)
    assert made.shape == (10_000, d)
    assert set(np.unique(made)) == {0, 1}
    (first, second), *_ = synth.fitted.chosen
    i, j = (int(name[1:]) - 1 for name in (first, second))
    assert abs((data[:, i] & data[:, j]).mean() - (made[:, i] & made[:, j]).mean()) < 0.05


def test_the_original_stops_where_we_say_it_does():
    """One number for each of (2 + 2)^16 cells, and more memory than an array of a gigabyte has."""
    resource = pytest.importorskip("resource")
    frame = pd.DataFrame(binary(50, 16)).rename(columns=str)
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    original = Synthesizer.create("mwem", epsilon=1.0)
    resource.setrlimit(resource.RLIMIT_AS, (1 << 34, hard))
    try:
        with pytest.raises(MemoryError, match="4294967296"):
            original.fit(frame, categorical_columns=list(frame.columns))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


# --- what goes in comes out


def test_frames_arrays_and_lists_come_back_as_they_were():
    frame = people()
    synth = create(domain=DOMAIN, rng=seeded(1))
    made = synth.fit_sample(frame)
    assert isinstance(made, pd.DataFrame)
    assert made.shape == frame.shape
    assert list(made.columns) == list(DOMAIN.names)
    assert set(made["sex"]) == {"f", "m"}
    array = synth.fit_sample(frame[["sex", "age", "region"]].to_numpy())
    assert isinstance(array, np.ndarray)
    assert array.shape == frame.shape
    rows = synth.fit_sample([tuple(row) for row in frame.to_numpy().tolist()])
    assert isinstance(rows, list)
    assert len(rows) == len(frame)
    assert {type(row) for row in rows} == {tuple}
    assert {type(value) for value in rows[0]} == {str, int}


def test_samples_follow_the_records():
    frame = people(20_000)
    synth = create(domain=DOMAIN, rng=seeded(2))
    synth.fit(frame)
    made = synth.sample(20_000)
    truth, found = (pd.crosstab(f["sex"], f["age"], normalize=True).to_numpy() for f in (frame, made))
    assert abs(truth - found).max() < 0.02
    assert abs((made["region"] == "n").mean() - 0.5) < 0.02


def test_conditions_of_smartnoise_work():
    synth = create(domain=DOMAIN, rng=seeded(3))
    synth.fit(people())
    made = synth.sample_conditional(30, "age > 1")
    assert len(made) == 30
    assert (made["age"] > 1).all()


def test_columns_that_the_domain_does_not_name_are_left_out():
    synth = create(domain=fastdp.Domain(age=4), rng=seeded(4))
    assert list(synth.fit_sample(people()).columns) == ["age"]


def test_the_same_key_gives_the_same_records():
    one, two = (create(domain=DOMAIN, rng=seeded(5)).fit_sample(people()) for _ in range(2))
    assert one.equals(two)


def test_it_pickles():
    synth = create(domain=DOMAIN)
    synth.fit(people())
    again = pickle.loads(pickle.dumps(synth))
    assert len(again.sample(5)) == 5
    assert again.guarantee == synth.guarantee


# --- transformers


def public_labels(nullable=False):
    label = LabelTransformer(nullable=nullable)
    label.fit(["f", "m"])
    return label


def test_fitted_transformers_say_what_values_there_are():
    frame = people()[["sex", "age"]].assign(income=np.random.default_rng(0).lognormal(10, 1, 2000))
    table = TableTransformer([
        public_labels(), BinTransformer(bins=4, lower=-0.5, upper=3.5), BinTransformer(bins=7, lower=0, upper=70_000),
    ])  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        synth = create(rng=seeded(6))
        synth.fit(frame, transformer=table)
    assert synth.fitted.domain.sizes == (2, 4, 7)
    assert synth.guarantee.epsilon == 3.0
    made = synth.sample(2000)
    assert list(made.columns) == ["sex", "age", "income"]
    assert set(made["sex"]) == {"f", "m"}
    assert set(made["income"]) <= {5000.0 + 10_000 * i for i in range(7)}
    assert abs((made["sex"] == "f").mean() - 0.7) < 0.05


def test_public_labels_are_not_fitted_again():
    """TableTransformer.fit would: then labels that do not occur were gone."""
    table = TableTransformer([public_labels(), BinTransformer(bins=3, lower=0, upper=3)])
    assert not table.fit_complete
    frame = pd.DataFrame({"sex": ["f"] * 500, "age": [0.5, 1.5] * 250})
    synth = create(rng=seeded(7))
    synth.fit(frame, transformer=table)
    assert synth.fitted.domain.sizes == (2, 3)


def test_missing_entries_where_they_are_declared():
    frame = pd.DataFrame({"sex": ["f", "m", None, "m"] * 300, "x": [1.0, np.nan, 2.0, 5.0] * 300})
    table = TableTransformer([public_labels(nullable=True), BinTransformer(bins=3, lower=0, upper=6, nullable=True)])
    synth = create(rng=seeded(8), epsilon=20.0)
    synth.fit(frame, transformer=table)
    assert synth.fitted.domain.sizes == (3, 3, 2)
    made = synth.sample(1200)
    assert abs(made["sex"].isna().mean() - 0.25) < 0.06
    assert abs(made["x"].isna().mean() - 0.25) < 0.06


def test_dropped_anonymised_and_chained_columns():
    frame = people()
    parts = [ClampTransformer(lower=1.0, upper=100.0), LogTransformer(), BinTransformer(bins=5, lower=-0.1, upper=5.0)]
    log_bins = ChainTransformer(parts)
    log_bins.fit([1.0, 2.0])
    constraints = {
        "sex": public_labels(), "age": DropTransformer(), "region": AnonymizationTransformer(lambda: "somewhere"),
        "x": log_bins,
    }  # fmt: skip
    synth = create(rng=seeded(9))
    synth.fit(frame.assign(x=np.linspace(0, 200, 2000)), transformer=constraints)
    assert synth.fitted.domain.sizes == (2, 5)
    made = synth.sample(10)
    assert list(made.columns) == ["sex", "region", "x"]
    assert set(made["region"]) == {"somewhere"}


# --- what would not be private


@pytest.mark.parametrize(("options", "what"), [
    ({}, "kinds of columns"), ({"transformer": {"sex": "drop"}}, "kinds of columns"),
    ({"categorical_columns": ["sex", "age", "region"]}, "labels that occur"),
    ({"categorical_columns": ["sex", "region"], "continuous_columns": ["age"], "preprocessor_eps": 1.0}, "labels that"),
    ({"transformer": TableTransformer([LabelTransformer()] * 3)}, "labels that occur"),
    ({"transformer": TableTransformer([ChainTransformer([LabelTransformer()])] * 3)}, "labels that occur"),
])  # fmt: skip
def test_labels_are_not_read_off_the_records(options, what):
    with fastdp.Budget(epsilon=5.0) as budget, pytest.raises(ValueError, match=f"{what} .*not private: declare"):
        create(rng=Watched()).fit(people(), **options)
    assert not budget.releases


@pytest.mark.parametrize("options", [{}, {"categorical_columns": ["sex", "age", "region"]}])
def test_unless_that_is_meant(options):
    synth = create(rng=seeded(10), nonprivate_labels=True)
    with pytest.warns(fastdp.PrivacyWarning, match="read off"):
        synth.fit(people(), **options)
    assert synth.fitted.domain.sizes == (2, 4, 3)
    assert synth.guarantee is None
    assert set(synth.sample(500)["region"]) <= {"n", "s", "w"}


def test_the_option_alone_makes_nothing_less_private():
    synth = create(rng=seeded(10), nonprivate_labels=True)
    synth.fit(people()[["sex"]], transformer=TableTransformer([public_labels()]))
    assert synth.guarantee.epsilon == 3.0


def test_a_label_that_is_not_known_is_told_without_showing_it():
    frame = pd.DataFrame({"sex": ["f", "secret"] * 50})
    with fastdp.Budget(epsilon=5.0) as budget, pytest.raises(fastdp.DomainError) as caught:
        create(rng=Watched()).fit(frame, transformer=TableTransformer([public_labels()]))
    assert not budget.releases
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None
    with pytest.raises(fastdp.DomainError, match="column 'sex'"):
        create(rng=Watched(), domain=fastdp.Domain(sex=["f", "m"])).fit(frame)


# --- epsilon


def searching(bins=6):
    return TableTransformer([public_labels(), BinTransformer(bins=bins)])


def wages(n=3000):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"sex": rng.choice(["f", "m"], n), "wage": rng.uniform(3, 60, n)})


@pytest.mark.parametrize(("neighbors", "price"), [("add-remove", 1.0), ("replace-one", 2.0)])
def test_a_search_for_bounds_is_charged_what_it_costs(neighbors, price):
    records = 1000 if neighbors == "add-remove" else None
    with fastdp.Budget(epsilon=5.0, neighbors=neighbors) as budget:
        synth = create(epsilon=5.0, rng=seeded(11), neighbors=neighbors, records=records)
        synth.fit(wages(), transformer=searching(), preprocessor_eps=1.0)
    search, fit = budget.releases
    assert (search.mechanism, fit.mechanism) == ("smartnoise bounds", "mwem")
    assert search.guarantee == fastdp.PureDP(price, neighbors=neighbors)
    assert fit.guarantee.forms()[0].pure == pytest.approx(5.0 - price)
    assert synth.guarantee == fastdp.PureDP(5.0, neighbors=neighbors)
    assert Fraction(search.guarantee.epsilon) + Fraction(fit.guarantee.forms()[0].pure) <= 5
    assert synth.epsilon == 5.0
    assert synth.sample(1000)["wage"].between(0, 64).all()


@pytest.mark.parametrize(("frame", "options", "error", "match"), [
    (wages(), {}, ValueError, r"preprocessor_eps=0\.0: must be > 0"),
    (wages(), {"preprocessor_eps": 1.6}, ValueError, r"costs 3\.2 for replace-one .*epsilon=3\.0"),
    (wages(), {"preprocessor_eps": -1.0}, ValueError, r"preprocessor_eps=-1\.0"),
    (wages().assign(wage=np.nan), {"preprocessor_eps": 0.5}, fastdp.DomainError, "missing entries"),
    (wages().assign(wage="x"), {"preprocessor_eps": 0.5}, fastdp.DomainError, "refuse it"),
    (wages().assign(sex="x"), {"preprocessor_eps": 0.5}, fastdp.DomainError, "refuse it"),
])  # fmt: skip
def test_what_is_refused_before_a_search_costs_nothing(frame, options, error, match):
    with fastdp.Budget(epsilon=9.0) as budget, pytest.raises(error, match=match):
        create(rng=Watched()).fit(frame, transformer=searching(), **options)
    assert not budget.releases
    assert budget.left == fastdp.PureDP(9.0)


def test_a_search_that_is_not_needed_is_refused():
    table = TableTransformer([public_labels(), BinTransformer(bins=3, lower=0, upper=60)])
    with pytest.raises(ValueError, match="no transformer searches"):
        create(rng=Watched()).fit(wages(), transformer=table, preprocessor_eps=0.5)


def test_a_budget_may_be_given():
    budget = fastdp.Budget(epsilon=4.0, delta=1e-6)
    synth = create(epsilon=3.0, delta=1e-6, domain=DOMAIN, budget=budget)
    synth.fit(people())
    assert [row.mechanism for row in budget.releases] == ["mwem"]
    assert synth.guarantee == budget.releases[0].guarantee
    synth.sample(10)
    with pytest.raises(fastdp.BudgetExceeded):
        synth.fit(people())
    with pytest.raises(ValueError, match="must come after fit"):
        synth.sample(1)


# --- wrong input


@pytest.mark.parametrize(("options", "match"), [
    ({"epsilon": 0}, "epsilon=0"), ({"epsilon": None}, "epsilon=None"), ({"delta": 1.0}, "delta=1.0"),
    ({"domain": 3}, "domain: type int"), ({"marginal_width": 0}, "marginal_width=0"), ({"rounds": 0}, "rounds=0"),
    ({"variant": "x"}, "variant='x'"), ({"outside": "x", "domain": DOMAIN}, "outside='x'"),
    ({"outside": "clip"}, "must be 'raise' without a domain"), ({"neighbors": "x"}, "neighbors='x'"),
    ({"nonprivate_labels": True, "domain": DOMAIN}, "must be False with a domain"),
])  # fmt: skip
def test_wrong_parameters(options, match):
    with pytest.raises(ValueError, match=match):
        create(**options)


@pytest.mark.parametrize(("options", "match"), [
    ({"categorical_columns": ["sex"]}, "categorical_columns: must"), ({"preprocessor_eps": 1.0}, "preprocessor_eps: "),
    ({"nullable": True}, "nullable: must not"), ({"transformer": {"sex": "drop"}}, "transformer: must not"),
    ({"transformer": NoTransformer()}, "transformer: must not"),
])  # fmt: skip
def test_a_domain_says_it_all(options, match):
    with pytest.raises(ValueError, match=match):
        create(domain=DOMAIN, rng=Watched()).fit(people(), **options)


@pytest.mark.parametrize(("transformer", "match"), [
    (NoTransformer(), "has no columns"), (3, "type int: must be a TableTransformer"),
    (TableTransformer([LogTransformer()] * 3), "LogTransformer: must make labels or bins"),
])  # fmt: skip
def test_transformers_that_say_nothing(transformer, match):
    with pytest.raises(ValueError, match=match):
        create(rng=Watched()).fit(people(), transformer=transformer)


def test_other_wrong_input():
    synth = create(domain=DOMAIN, rng=Watched())
    with pytest.raises(ValueError, match="n=0 records"):
        synth.fit(people().iloc[:0])
    with pytest.raises(ValueError, match="'sex'"):
        synth.fit(people()[["age"]])
    with pytest.raises(TypeError, match="one positional argument"):
        synth.fit(people(), DOMAIN)
    with pytest.raises(ValueError, match="must come after fit"):
        synth.sample(1)
    with pytest.raises(fastdp.DomainError, match="column 'age'"):
        synth.fit(people().assign(age=9))
    create(domain=DOMAIN, outside="clip").fit(people().assign(age=9))
    fitted = create(domain=DOMAIN)
    fitted.fit(people())
    with pytest.raises(ValueError, match="n_rows=-1"):
        fitted.sample(-1)
    assert fitted.sample(0).shape == (0, 3)
