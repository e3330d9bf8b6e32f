// Package story tells Liftlock's main job as a story on embedded parts: a change
// goes from dev through qa to prod, and a release that only fails in qa comes
// back from there. The world is internal/emulator's; what moves the releases is
// the same server that "liftlock serve" runs.
//
// The story is told from outside: it acts as people do and looks at what they
// see. So the same story is told while the server is killed again and again, in
// the tests of internal/demo.
package story
