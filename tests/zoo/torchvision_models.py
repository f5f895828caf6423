"""Defines programs from small versions of torchvision's own models, whose code was not written for export."""
import torch
from torch import nn

from common import integers, normal, program

# The import of torchvision needs the schemas of these operators. They are declared here, so that the import also works
# if the compiled operators of torchvision do not load.
operators = torch.library.Library("torchvision", "FRAGMENT")
for schema in ("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
               "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"):
    try:
        operators.define(schema)
    except RuntimeError:
        pass  # the compiled operators did load

from torchvision import models  # noqa: E402
from torchvision.models.convnext import CNBlockConfig  # noqa: E402
from torchvision.models.efficientnet import MBConvConfig  # noqa: E402
from torchvision.models.mobilenetv3 import InvertedResidualConfig  # noqa: E402
from torchvision.models.regnet import BlockParams  # noqa: E402


def images(size, classes=10):
    return lambda n: ((normal(n, 3, size, size),), integers(classes, n))


def mobilenet_v3():
    settings = [InvertedResidualConfig(16, 3, 16, 8, True, "RE", 2, 1, 0.5),
                InvertedResidualConfig(8, 5, 24, 16, False, "HS", 1, 1, 0.5),
                InvertedResidualConfig(16, 3, 32, 16, True, "HS", 2, 1, 0.5)]
    return models.MobileNetV3(settings, last_channel=32, num_classes=10, dropout=0.0)


def efficientnet():
    settings = [MBConvConfig(1, 3, 1, 8, 8, 1, 1.0, 1.0), MBConvConfig(4, 5, 2, 8, 12, 2, 1.0, 1.0)]
    return models.EfficientNet(settings, dropout=0.0, stochastic_depth_prob=0.0, num_classes=10, last_channel=24)


def convnext():
    return models.ConvNeXt([CNBlockConfig(8, 16, 1), CNBlockConfig(16, None, 1)], num_classes=10)


def vision_transformer():
    return models.VisionTransformer(image_size=12, patch_size=4, num_layers=2, num_heads=2, hidden_dim=16, mlp_dim=32,
                                    num_classes=10)


def swin():
    return models.SwinTransformer(patch_size=[2, 2], embed_dim=8, depths=[2, 2], num_heads=[1, 2], window_size=[4, 4],
                                  stochastic_depth_prob=0.0, num_classes=10)


def densenet():
    return models.DenseNet(growth_rate=4, block_config=(2, 2), num_init_features=8, bn_size=2, num_classes=10)


def regnet():
    parameters = BlockParams.from_init_params(depth=4, w_0=8, w_a=8.0, w_m=2.0, group_width=8, se_ratio=0.25)
    return models.RegNet(parameters, num_classes=10, stem_width=8)


def small(build, **options):
    """Builds the model with 10 classes and the given options, without dropout."""
    model = build(num_classes=10, **options)
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    return model


program("torchvision_mobilenet_v2", "torchvision",
        lambda: small(models.MobileNetV2, width_mult=0.25, round_nearest=4, inverted_residual_setting=[
            [1, 16, 1, 1], [3, 24, 2, 2], [3, 32, 1, 2]]), images(16), batch=4, other=3)
program("torchvision_mobilenet_v3", "torchvision", mobilenet_v3, images(16), batch=4, other=3)
program("torchvision_efficientnet", "torchvision", efficientnet, images(16), batch=4, other=3)
program("torchvision_convnext", "torchvision", convnext, images(16), batch=4, other=3)
program("torchvision_vit", "torchvision", vision_transformer, images(12), batch=4, other=3)
program("torchvision_swin", "torchvision", swin, images(16), batch=4, other=3)
program("torchvision_densenet", "torchvision", densenet, images(16), batch=4, other=3)
program("torchvision_regnet", "torchvision", regnet, images(16), batch=4, other=3)
program("torchvision_shufflenet", "torchvision",
        lambda: small(lambda **options: models.ShuffleNetV2([2, 2, 1], [8, 8, 16, 16, 24], **options)), images(32),
        batch=4, other=3)
