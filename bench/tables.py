"""Compares the job that `sinew init` writes for a table with scikit-learn: defaults of histogram gradient boosting and of the
MLP, and the MLP after a random search. The tables come with scikit-learn, statsmodels and vega_datasets, and from
$SINEW_DATA/tabular.

usage: tables.py [quick] [TABLE ...]     prints every figure; `compare.py tables` keeps them in docs/benchmarks.md
A cell is a table and a seed, which draws the rows, the split and all initial values. Every contestant gets the same
training rows, and is measured on the same test rows: by the error rate, or by the root mean square error over the
standard deviation of the test targets. Sinew and the search take their validation rows from the training rows.
"""
import collections
import concurrent.futures
import csv
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

from contestants import SINEW
from figures import figure

TRIALS, TEST_SHARE = 30, 0.25
Size = collections.namedtuple("Size", "seeds rows time_limit")  # rows: the most of a cell; time_limit: of `sinew init`
FULL, QUICK = Size(5, 5000, "5m"), Size(2, 1000, "1m")
OURS, BOOSTING, MLP, TUNED = "Sinew", "HistGradientBoosting", "sklearn MLP", "sklearn MLP, tuned"
CONTESTANTS = [OURS, BOOSTING, MLP, TUNED]
LEAKS = {"titanic": ["alive"]}  # columns that repeat the target in other words
# Of each file: the target, and whether it is a number to predict.
OWN = {"diamonds": ("price", True), "mpg": ("mpg", True), "penguins": ("species", False), "titanic": ("survived", False)}
IN_PACKAGES = {"anes96": ("statsmodels", "datasets/anes96/anes96.csv", "vote", False),
               "randhie": ("statsmodels", "datasets/randhie/randhie.csv", "mdvis", True),
               "seattle_weather": ("vega_datasets", "_data/seattle-weather.csv", "weather", False)}

Table = collections.namedtuple("Table", "name columns rows target regression")  # rows: lists of texts


def tables_of_sklearn():
    from sklearn import datasets
    for name in ("iris", "wine", "digits", "breast_cancer", "diabetes"):
        bunch = getattr(datasets, f"load_{name}")()
        columns = [str(column).replace(" ", "_") for column in bunch.feature_names] + ["target_"]
        rows = [[repr(float(v)) for v in x] + [repr(float(y)) if name == "diabetes" else f"c{y}"] for x, y in zip(bunch.data, bunch.target)]
        yield Table(name, columns, rows, "target_", name == "diabetes")


def table_of_file(name, path, target, regression):
    with open(path, newline="", encoding="utf-8") as file:
        text = file.read()
    columns, *rows = csv.reader(text.splitlines(), delimiter="\t" if "\t" in text else ",")
    columns = [column.strip("'") for column in columns]
    kept = [i for i, column in enumerate(columns) if column not in LEAKS.get(name, [])]
    at = columns.index(target)
    return Table(name, [columns[i] for i in kept], [[row[i] for i in kept] for row in rows if row[at] != ""], target, regression)


def tables_of_files():
    folder = pathlib.Path(os.environ.get("SINEW_DATA", "")) / "tabular"
    for path in sorted(folder.glob("*.csv")) if folder.is_dir() else []:
        if path.stem in OWN:
            yield table_of_file(path.stem, path, *OWN[path.stem])
    for name, (package, file, *target) in IN_PACKAGES.items():
        yield table_of_file(name, pathlib.Path(importlib.util.find_spec(package).origin).parent / file, *target)


def split(table, seed, most):
    import numpy as np
    order = np.random.default_rng([seed, len(table.rows)]).permutation(len(table.rows))[:most]
    tests = max(1, round(len(order) * TEST_SHARE))
    pick = lambda which: [table.rows[i] for i in which]
    return pick(order[tests:]), pick(order[:tests])


def error_of(table, truth, predicted):
    import numpy as np
    if not table.regression:
        return float(np.mean([str(a) != str(b) for a, b in zip(truth, predicted)]))
    truth, predicted = np.array(truth, float), np.array(predicted, float)
    return float(np.sqrt(np.mean((truth - predicted) ** 2)) / np.std(truth))


# ---- Sinew ---------------------------------------------------------------------------------------------------------


def sinew(*words, cwd):
    done = subprocess.run([SINEW, *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=1800)
    if done.returncode != 0:
        raise RuntimeError(f"sinew {' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout[-1500:]}{done.stderr[-1500:]}")


def by_sinew(table, train, test, seed, time_limit):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, rows in (("train", train), ("test", test)):
            with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows([table.columns, *rows])
        task = "regression" if table.regression else "classification"
        sinew("init", "train.csv", "--target", table.target, "--task", task, "--time-limit", time_limit, cwd=folder)
        sinew("train", "job.yaml", "data.split.test=0", f"trainer.seed={seed}", "trainer.lanes=1", "logging.tensorboard=false",
              "--run-dir", "run", cwd=folder)
        sinew("predict", "run", "test.csv", "-o", "out.csv", cwd=folder)
        with open(folder / "out.csv", newline="", encoding="utf-8") as file:
            return [row["prediction"] for row in csv.DictReader(file)]


# ---- scikit-learn --------------------------------------------------------------------------------------------------


def encoded(table, train, test):
    """Returns the columns as numbers: categories as codes of the training rows, missing and new values as NaN. And which
    columns are categories."""
    import numpy as np
    features = [i for i, column in enumerate(table.columns) if column != table.target]

    def number(text):
        try:
            return float(text)
        except ValueError:
            return None

    made, categories = [[], []], []
    for i in features:
        values = [row[i] for row in train]
        is_number = all(value == "" or number(value) is not None for value in values)
        codes = {value: code for code, value in enumerate(sorted({value for value in values if value != ""}))}
        if not is_number and len(codes) > 200:
            continue  # a name of each row
        categories.append(not is_number)
        for rows, columns in zip((train, test), made):
            columns.append([(number(row[i]) if is_number else codes.get(row[i])) for row in rows])
    as_array = lambda columns: np.array([[np.nan if v is None else v for v in column] for column in columns], float).T
    return as_array(made[0]), as_array(made[1]), np.array(categories)


def network(categories, regression, seed, **options):
    """The MLP behind the usual preparation of its inputs, and for numbers of its target."""
    import numpy as np
    from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    inputs = ColumnTransformer([("numbers", make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), np.flatnonzero(~categories)),
                                ("categories", OneHotEncoder(handle_unknown="ignore"), np.flatnonzero(categories))])
    model = make_pipeline(inputs, (MLPRegressor if regression else MLPClassifier)(random_state=seed, **options))
    return TransformedTargetRegressor(model, transformer=StandardScaler()) if regression else model


def tuned(categories, table, x, y, seed):
    """A random search, by the error on a fifth of the training rows; then the best options on all of them."""
    import numpy as np
    rng = np.random.default_rng(seed)
    held = rng.permutation(len(y)) < len(y) // 5
    best = (float("inf"), {})
    for trial in range(TRIALS):
        options = {"hidden_layer_sizes": [(64,), (128,), (256,), (128, 64), (256, 128), (128, 128, 128)][rng.integers(6)],
                   "learning_rate_init": 10 ** rng.uniform(-4, -1.5), "alpha": 10 ** rng.uniform(-6, 0),
                   "batch_size": min(int(rng.choice([32, 64, 128, 256])), int((~held).sum())),
                   "activation": str(rng.choice(["relu", "tanh"])), "early_stopping": bool(rng.integers(2)), "max_iter": 100}
        model = network(categories, table.regression, seed, **options).fit(x[~held], y[~held])
        error = error_of(table, y[held], model.predict(x[held]))
        best = min(best, (error, trial, options), key=lambda one: one[0])
    return network(categories, table.regression, seed, **best[-1]).fit(x, y)


def by_sklearn(contestant, table, train, test, seed):
    import numpy as np
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    x, x_test, categories = encoded(table, train, test)
    at = table.columns.index(table.target)
    y = np.array([row[at] for row in train], float if table.regression else str)
    if contestant == BOOSTING:
        make = HistGradientBoostingRegressor if table.regression else HistGradientBoostingClassifier
        model = make(categorical_features=categories, random_state=seed).fit(x, y)
    elif contestant == MLP:
        model = network(categories, table.regression, seed).fit(x, y)
    else:
        model = tuned(categories, table, x, y, seed)
    return list(model.predict(x_test))


# ---- all cells -----------------------------------------------------------------------------------------------------


def cell(table, seed, size):
    """Returns the error and the seconds of every contestant."""
    warnings.filterwarnings("ignore")  # an MLP that has not converged, a value that training rows lack
    train, test = split(table, seed, size.rows)
    truth = [row[table.columns.index(table.target)] for row in test]
    found = {}
    for contestant in CONTESTANTS:
        began = time.monotonic()
        if contestant == OURS:
            predicted = by_sinew(table, train, test, seed, size.time_limit)
        else:
            predicted = by_sklearn(contestant, table, train, test, seed)
        found[contestant] = (error_of(table, truth, predicted), time.monotonic() - began)
    return found


def ranks(errors):
    """Returns the rank of each contestant, 1 for the smallest error; equal errors share the mean of their ranks."""
    below = lambda a: sum(b < a for b in errors.values())
    equal = lambda a: sum(b == a for b in errors.values())
    return {name: below(a) + (equal(a) + 1) / 2 for name, a in errors.items()}


def measure(size, only=None):
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"  # the cells run side by side
    tables = [table for table in [*tables_of_sklearn(), *tables_of_files()] if only is None or table.name in only]
    with concurrent.futures.ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        waiting = {pool.submit(cell, table, seed, size): (table.name, seed) for seed in range(size.seeds) for table in tables}
        cells = {}
        for future in concurrent.futures.as_completed(waiting):
            cells[waiting[future]] = future.result()
            figures = ", ".join(f"{who} {error:.4f} ({seconds:.0f} s)" for who, (error, seconds) in future.result().items())
            print(f"{' '.join(map(str, waiting[future]))}: {figures}", file=sys.stderr, flush=True)
        return tables, cells


def summary(tables, cells):
    """Returns for each table the mean errors, and for each contestant the mean rank and the mean seconds."""
    mean = lambda values: sum(values) / len(values)
    of = lambda name: [found for (table, _), found in cells.items() if table == name]
    errors = {table.name: {who: mean([found[who][0] for found in of(table.name)]) for who in CONTESTANTS} for table in tables}
    by_cell = [ranks({who: found[who][0] for who in CONTESTANTS}) for found in cells.values()]
    mean_rank = {who: mean([rank[who] for rank in by_cell]) for who in CONTESTANTS}
    seconds = {who: mean([found[who][1] for found in cells.values()]) for who in CONTESTANTS}
    return errors, mean_rank, seconds


def tables(folder, quick):
    del folder
    size = QUICK if quick else FULL
    measured, cells = measure(size)
    errors, mean_rank, seconds = summary(measured, cells)
    others = lambda values, form: ", ".join(f"{who} {form.format(values[who])}" for who in CONTESTANTS[1:])
    what = f"{len(measured)} tables of at most {size.rows} rows, {size.seeds} seeds each, `--time-limit {size.time_limit}`"
    found = [figure(f"mean rank among {len(CONTESTANTS)}", mean_rank[OURS], min(mean_rank[BOOSTING], mean_rank[TUNED]), low=True,
                    detail=f"{others(mean_rank, '{:.2f}')}; {what}"),
             figure("seconds for a table, on one core", seconds[OURS], detail=others(seconds, "{:.2f}"))]
    for table in measured:
        unit = "RMSE / deviation" if table.regression else "error rate"
        found.append(figure(f"{table.name}: {unit}", errors[table.name][OURS], detail=others(errors[table.name], "{:.3f}")))
    return found


def main(words):
    quick = "quick" in words
    only = [word for word in words if word != "quick"] or None
    measured, cells = measure(QUICK if quick else FULL, only)
    errors, mean_rank, seconds = summary(measured, cells)
    print(f"{'':16}" + "".join(f"{who:>22}" for who in CONTESTANTS))
    for name, row in [*errors.items(), ("mean rank", mean_rank), ("seconds", seconds)]:
        print(f"{name:16}" + "".join(f"{row[who]:22.4f}" for who in CONTESTANTS))


if __name__ == "__main__":
    main(sys.argv[1:])
