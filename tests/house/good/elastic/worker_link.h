// A public header of two words and more, which includes what is public.
#pragma once

#include "elastic/protocol/link.h"
