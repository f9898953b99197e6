// The module that includes NCCL's header.
#include <nccl.h>
