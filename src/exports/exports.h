// Makes files of a trained model that other programs use without Sinew: ONNX, TorchScript,
// torch.export, safetensors.
//
// worker/ calls this for `sinew export`. Every export is made in a new directory, which appears whole or not at all,
// and only after the exported model has been run on made-up samples and compared with the trained one. Only the
// built-in architectures can be exported; a model of the user's own is already a file in its own format.
#pragma once

#include <string>
#include <vector>

#include "base/disk.h"
#include "spec/spec.h"
#include "train/train.h"

namespace sinew::exports {

struct Wanted {
  std::string format;     // onnx | torchscript | safetensors | pt2
  std::string directory;  // must not exist yet
};
struct Made {
  std::vector<std::string> files;  // in the directory
  std::string checked;             // a sentence that says how the export was compared with the trained model
  std::string usage;               // a command or a line of Python that uses it
};
// `job`: the job of `trained`. Throws Error if this model cannot be exported in this format, if the directory exists,
// or if the export computes something else than the trained model.
Made export_model(const train::Trained& trained, const spec::Job& job, const Wanted& wanted, Disk& disk);

}  // namespace sinew::exports
