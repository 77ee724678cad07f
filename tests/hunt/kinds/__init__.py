"""All kinds of models, one file a library."""

from hunt.kinds import of_catboost, of_lightgbm, of_onnx, of_sklearn, of_xgboost, ours

for _library in (of_xgboost, of_lightgbm, of_catboost, of_sklearn, ours, of_onnx):
    _library.enter_all()
