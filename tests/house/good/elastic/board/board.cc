// A wing that includes what lies below it, itself, and what is public.
#include "elastic/board/board.h"
#include "elastic/protocol/keys.h"
#include "elastic/worker_link.h"
