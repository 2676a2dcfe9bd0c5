"""fastdp.connect.mbi against mbi itself: domains, records, models, and a mechanism in the manner of private-pgm's."""

import inspect
import itertools
import warnings

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="make test-peers brings mbi")
jax.config.update("jax_enable_x64", True)  # mbi warns without it
mbi = pytest.importorskip("mbi", reason="make test-peers brings it")

import fastdp  # noqa: E402
from fastdp.connect import mbi as connect  # noqa: E402

DOMAIN = fastdp.Domain(age=4, sex=["f", "m"], region=3)
MIXED = {"age": [0, 3, 2, 1, 3], "sex": ["f", "m", "m", "f", "m"], "region": [2, 0, 1, 1, 0]}


def seeded(seed=0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.PrivacyWarning)
        return fastdp.Randomness(seed=seed)


@pytest.fixture
def synthetic():
    weights = np.random.default_rng(1).random((4, 2, 3))
    return fastdp.SyntheticDistribution(weights, DOMAIN, n=1000)


def people(n, seed=0):
    """Four attributes, the first two and the last two much alike."""
    rng = np.random.default_rng(seed)
    a, c = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1]), rng.integers(3, size=n)
    b, d = np.where(rng.random(n) < 0.9, a, rng.integers(4, size=n)), np.where(rng.random(n) < 0.8, c == 0, c == 1)
    return {"a": a, "b": b, "c": c, "d": d.astype(int)}, fastdp.Domain(a=4, b=4, c=3, d=2)


# --- domains and records


def test_domains_both_ways():
    made = connect.to_domain(DOMAIN)
    assert made == mbi.Domain(["age", "sex", "region"], [4, 2, 3])
    assert made.labels_config == {"age": (0, 1, 2, 3), "sex": ("f", "m"), "region": (0, 1, 2)}
    assert connect.from_domain(made) == DOMAIN
    plain = fastdp.Domain.binary(3)
    assert connect.to_domain(plain).labels is None
    assert connect.from_domain(connect.to_domain(plain)) == plain


@pytest.mark.parametrize("domain", [mbi.Domain([0, 1], [2, 2]), mbi.Domain([], []), 3])
def test_domains_that_are_refused(domain):
    with pytest.raises(ValueError, match="must be"):
        connect.from_domain(domain)


def test_records_both_ways():
    dataset = connect.to_dataset(MIXED, DOMAIN)
    assert isinstance(dataset, mbi.Dataset)
    assert {name: column.tolist() for name, column in dataset.to_dict().items()} == {
        "age": [0, 3, 2, 1, 3], "sex": [0, 1, 1, 0, 1], "region": [2, 0, 1, 1, 0],
    }  # fmt: skip
    assert dataset.project(("sex",)).datavector().tolist() == [2, 3]
    records, domain = connect.from_dataset(dataset)
    assert domain == DOMAIN
    assert {name: column.tolist() for name, column in records.items()} == MIXED
    tables = fastdp.release_marginals(records, domain, fastdp.marginals(domain, 1), epsilon=50.0, delta=1e-6)
    assert tables.n == 5


def test_data_frames_go_in():
    pandas = pytest.importorskip("pandas")
    dataset = connect.to_dataset(pandas.DataFrame(MIXED), DOMAIN)
    assert dataset.to_dict()["sex"].tolist() == [0, 1, 1, 0, 1]


def test_records_outside_the_domain():
    with pytest.raises(fastdp.DomainError, match="column 'age'"):
        connect.to_dataset(MIXED | {"age": [0, 3, 9, 1, 3]}, DOMAIN)
    clipped = connect.to_dataset(MIXED | {"age": [0, 3, 9, 1, 3]}, DOMAIN, outside="clip")
    assert clipped.to_dict()["age"].tolist() == [0, 3, 3, 1, 3]
    with pytest.raises(ValueError, match="'sex'"):
        connect.to_dataset({"age": [1], "region": [1]}, DOMAIN)
    beyond = mbi.Dataset({"x": np.array([0, 5])}, mbi.Domain(["x"], [3]))
    with pytest.raises(fastdp.DomainError, match="column 'x'"):
        connect.from_dataset(beyond)


def test_weighted_records_are_refused():
    dataset = mbi.Dataset({"x": np.array([0, 1])}, mbi.Domain(["x"], [3]), weights=np.array([1.0, 2.0]))
    with pytest.raises(ValueError, match="must not be weighted"):
        connect.from_dataset(dataset)
    with pytest.raises(ValueError, match=r"must be an mbi\.Dataset"):
        connect.from_dataset(MIXED)


# --- the Model protocol


def members(protocol):
    return {name for kind in protocol.__mro__ for name in vars(kind) if not name.startswith("_")}


def test_a_model_has_all_that_the_protocol_asks_for(synthetic):
    model = connect.Model(synthetic)
    assert members(mbi.Model) == {"domain", "project", "supports", "total", "synthetic_data"}
    for name in members(mbi.Model):
        asked = inspect.getattr_static(mbi.Model, name)
        if isinstance(asked, property):
            assert not callable(getattr(model, name))
        else:
            ours, theirs = (list(inspect.signature(f).parameters) for f in (getattr(connect.Model, name), asked))
            assert ours == theirs


def test_tables_of_a_model(synthetic):
    """Against mbi's own sums over the joint table."""
    model = connect.Model(synthetic)
    joint = mbi.Factor(model.domain, jax.numpy.asarray(1000 * synthetic.probabilities().reshape(4, 2, 3)))
    for k in range(4):
        for names in itertools.permutations(DOMAIN.names, k):
            found, expected = model.project(names), joint.project(names)
            assert isinstance(found, mbi.Factor)
            assert found.domain == expected.domain
            assert found.values.shape == expected.values.shape
            assert np.allclose(found.values, expected.values, rtol=1e-12)
            assert float(found.sum().values) == pytest.approx(model.total)
    assert model.project("sex").domain.attributes == ("sex",)


def test_what_a_model_supports(synthetic):
    model = connect.Model(synthetic)
    assert model.supports("sex")
    assert model.supports(["sex", "age"])
    assert not model.supports(["sex", "height"])
    with pytest.raises(ValueError, match="attribute='height'"):
        model.project(["height"])


def test_the_total_of_a_model(synthetic):
    assert connect.Model(synthetic).total == 1000.0
    assert connect.Model(synthetic, total=12.5).total == 12.5
    unknown = fastdp.SyntheticDistribution(np.ones(24), DOMAIN)
    with pytest.raises(ValueError, match="total=None: must be given"):
        connect.Model(unknown)
    with pytest.raises(ValueError, match="total=-1"):
        connect.Model(unknown, total=-1)
    with pytest.raises(ValueError, match=r"must be a fastdp\.SyntheticDistribution"):
        connect.Model(np.ones(24))


def test_records_of_a_model(synthetic):
    model = connect.Model(synthetic, rng=seeded(2))
    dataset = model.synthetic_data()
    assert isinstance(dataset, mbi.Dataset)
    assert dataset.domain == model.domain
    assert dataset.records == 1000
    assert [model.synthetic_data(rows).records for rows in (0, 1, 77)] == [0, 1, 77]
    again = connect.Model(synthetic, rng=seeded(2)).synthetic_data()
    assert all((again.data[name] == dataset.data[name]).all() for name in DOMAIN.names)
    many = model.synthetic_data(200_000).project(DOMAIN.names).datavector() / 200_000
    assert abs(many - synthetic.probabilities()).max() < 0.006  # 5 sigma
    with pytest.raises(ValueError, match="rows=-1"):
        model.synthetic_data(-1)


def test_a_model_of_more_attributes_than_any_joint_table():
    records = np.random.default_rng(0).integers(2, size=(2000, 40))
    domain = fastdp.Domain.binary(40)
    queries = [fastdp.Conjunction({"v1": 1, "v2": 1})]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fastdp.AccuracyWarning)
        model = connect.Model(fastdp.mwem(records, domain, queries, epsilon=1.0, rounds=2))
    assert model.project(["v40", "v2"]).values.sum() == pytest.approx(2000)
    assert model.synthetic_data(10).domain.shape == (2,) * 40


def test_mbi_takes_a_model_where_it_takes_its_own(synthetic):
    model = connect.Model(synthetic)
    cliques = [("age", "sex"), ("sex", "region")]
    vector = mbi.CliqueVector.from_projectable(model, cliques)
    assert np.allclose(vector["age", "sex"].values, 1000 * synthetic.marginal(["age", "sex"]))
    measured = [mbi.LinearMeasurement(model.project(clique).datavector(), clique) for clique in cliques]
    watch = mbi.callbacks.default(measured, model.domain, model)  # it compares with the model's tables
    fitted = mbi.estimation.MirrorDescent().estimate(
        model.domain, measured, known_total=model.total, iters=500, callback_fn=watch
    )
    assert watch.summary["data"][-1][watch.summary["columns"].index("L1 Error")] < 1e-3
    for clique in cliques:
        assert np.allclose(fitted.project(clique).values, model.project(clique).values, atol=0.5)
    seeds = model.synthetic_data(5000)
    estimator = mbi.extensions.reweighted_dataset.ReweightedDatasetEstimator(
        seed_data=seeds, optimizer=pytest.importorskip("optax").adam(0.1)
    )
    weighted = estimator.estimate(model.domain, measured, known_total=model.total, iters=200)
    assert np.allclose(weighted.project(cliques[0]).values, model.project(cliques[0]).values, atol=5)


def test_a_fit_of_ours_is_a_model_of_theirs():
    records, domain = people(20_000)
    released = fastdp.release_marginals(
        records, domain, fastdp.marginals(domain, 2), epsilon=1.0, delta=1e-6, fit="entropic", rng=seeded(4)
    )
    model, truth = connect.Model(released.synthetic), connect.to_dataset(records, domain)
    assert model.total == truth.records == 20_000
    for pair in itertools.combinations(domain.names, 2):
        assert abs(model.project(pair).values - truth.project(pair).values).max() < 8 * released.sigma


def test_tables_of_ours_are_measurements_of_theirs():
    """As docs/connect/mbi.md has it."""
    records, domain = people(20_000)
    released = fastdp.release_marginals(
        records, domain, fastdp.marginals(domain, 2), epsilon=1.0, delta=1e-6, fit=None, rng=seeded(4)
    )
    measured = [
        mbi.LinearMeasurement(released.n * table.reshape(-1), names, stddev=released.sigma)
        for names, table in zip(released.workload.subsets, released.tables, strict=True)
    ]
    fitted = mbi.estimation.MirrorDescent().estimate(
        connect.to_domain(domain), measured, known_total=released.n, iters=500
    )
    truth = connect.to_dataset(records, domain)
    for pair in itertools.combinations(domain.names, 2):
        assert abs(fitted.project(pair).values - truth.project(pair).values).max() < 8 * released.sigma


# --- a mechanism that takes a prng


class Mechanism:
    """AIM in short, with the calls that private-pgm's mechanisms make: noise on tables, a choice by softmax."""

    def __init__(self, rho, prng):
        self.rho, self.prng = rho, prng

    def exponential_mechanism(self, qualities, epsilon, sensitivity=1.0, base_measure=None):
        keys = list(qualities)
        q = np.array([qualities[key] for key in keys])
        p = np.exp(0.5 * epsilon / sensitivity * (q - q.max()))
        return keys[self.prng.choice(p.size, p=p / p.sum())]

    def gaussian_noise(self, sigma, size):
        return self.prng.normal(0, sigma, size)

    def run(self, data, rounds):
        sigma, epsilon = np.sqrt(rounds / (2 * 0.9 * self.rho)), np.sqrt(8 * 0.1 * self.rho / rounds)
        measured, model = [], None
        candidates = list(itertools.combinations(data.domain.attributes, 2))
        for _ in range(rounds):
            model = mbi.estimation.MirrorDescent().estimate(
                data.domain, measured, known_total=float(data.records), iters=200
            )
            errors = {
                clique: float(np.linalg.norm(data.project(clique).datavector() - model.project(clique).datavector(), 1))
                for clique in candidates
            }
            clique = self.exponential_mechanism(errors, epsilon)
            candidates.remove(clique)
            table = data.project(clique).datavector()
            measured.append(mbi.LinearMeasurement(table + self.gaussian_noise(sigma, table.size), clique, stddev=sigma))
        return mbi.estimation.MirrorDescent().estimate(
            data.domain, measured, known_total=float(data.records), iters=500
        ), measured


class ExactMechanism(connect.ExactSelection, Mechanism):
    pass


@pytest.mark.parametrize("kind", [Mechanism, ExactMechanism])
def test_a_mechanism_runs_on_our_noise_and_choices(kind):
    records, domain = people(20_000)
    data = connect.to_dataset(records, domain)
    model, measured = kind(0.5, connect.Prng(rng=seeded(5))).run(data, rounds=3)
    assert {m.clique for m in measured} >= {("a", "b"), ("c", "d")}  # the pairs that are alike
    for m in measured:
        noise = np.asarray(m.noisy_measurement) - np.asarray(data.project(m.clique).datavector())
        assert (noise == np.round(noise)).all()
        assert 0 < abs(noise).max() < 8 * m.stddev
    assert abs(model.project(("a", "b")).values - data.project(("a", "b")).values).max() < 30


def test_a_mechanism_under_a_budget():
    records, domain = people(5_000)
    data = connect.to_dataset(records, domain)
    with fastdp.Budget(epsilon=6.0, delta=1e-6, theorem="zcdp", neighbors="add-remove") as budget:
        prng = connect.Prng(sensitivity=1.0, neighbors="add-remove", rng=seeded(6))
        ExactMechanism(0.5, prng).run(data, rounds=2)
    assert [row.mechanism for row in budget.releases] == ["exponential_mechanism", "mbi normal"] * 2
    rhos = sum(form.rho for row in budget.releases for form in row.guarantee.forms() if not form.leak)
    assert 0.4995 < rhos <= 0.5  # what the mechanism meant to spend; a choice costs a little below epsilon^2 / 8


def test_weighted_tables_meet_no_noise():
    dataset = mbi.Dataset({"x": np.array([0, 1])}, mbi.Domain(["x"], [2]), weights=np.array([0.5, 1.25]))
    with pytest.raises(fastdp.DomainError, match="multiples of 1"):
        dataset.project("x").datavector() + connect.Prng().normal(0, 1.0, 2)
