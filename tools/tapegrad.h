// Everything a model and its training need, in one include: tensors, operators, modules,
// optimizers, data.
#pragma once
