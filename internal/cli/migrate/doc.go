// Package migrate reads how Argo CD Image Updater and Kargo are configured, and says the same in a pipeline file's words:
// entries of discover, and an order of environments. What has no counterpart it names, with what to do about it.
//
// It is pure: manifests and Applications come in, values and sentences come out. It converts nothing that would bring in
// another version than the tool does. Such a rule is a note.
package migrate
