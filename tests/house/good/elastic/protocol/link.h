// What a public header may include, for it is public, too.
#pragma once
