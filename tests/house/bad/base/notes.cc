// Notes to self, left lying about.
// TODO: write it                     expect: todo
/* FIXME, it is wrong */           // expect: fixme
int wide = 1;  // this line goes on and on, until it is longer than what the house allows expect: line-length
