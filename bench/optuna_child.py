"""Serves Optuna over the protocol of docs/formats/ask-tell.md. Answers each line, a JSON object, with another one."""
import json
import sys
import warnings

import optuna

warnings.filterwarnings("ignore")
optuna.logging.set_verbosity(optuna.logging.ERROR)
SAMPLERS = {
    "tpe": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "tpe_group": lambda seed: optuna.samplers.TPESampler(seed=seed, multivariate=True, group=True),
    "gp": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "cmaes": lambda seed: optuna.samplers.CmaEsSampler(seed=seed),
}


def suggested(trial, entry):
    name = entry["name"]
    if entry["type"] == "cat":
        return trial.suggest_categorical(name, entry["choices"])
    suggest = trial.suggest_float if entry["type"] == "float" else trial.suggest_int
    return suggest(name, entry["low"], entry["high"], log=entry.get("log", False))


def asked(study, space, running):
    trial, params = study.ask(), {}
    for entry in space:
        if all(params.get(parent) in values for parent, values in entry.get("if", {}).items()):
            params[entry["name"]] = suggested(trial, entry)
    running[trial.number] = trial
    return {"id": trial.number, "params": params}


def main():
    study, space, running = None, [], {}
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"ok": True}
        if request["cmd"] == "init":
            space, running = request["space"], {}
            study = optuna.create_study(sampler=SAMPLERS[request["sampler"]](request["seed"]), directions=request["directions"])
        elif request["cmd"] == "ask":
            answer = asked(study, space, running)
        elif request["cmd"] == "tell":
            study.tell(running.pop(request["id"]), request["value"])
        else:
            return
        print(json.dumps(answer), flush=True)


main()
