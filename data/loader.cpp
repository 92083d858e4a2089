#include "tapegrad/data/loader.h"

namespace tg::data {

template class DataLoader<ImageAndLabel>;

}  // namespace tg::data
