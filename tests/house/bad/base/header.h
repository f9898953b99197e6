// A header with neither guard nor manners.  // expect: pragma-once
using namespace std;  // expect: using-namespace
