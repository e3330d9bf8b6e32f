// Package effects says what edits do to targets. Gatherer composes releases and reverts as edits, proves
// that no target outside an environment depends on them, and renders what they change. Argo CDs render
// it too, where the server's file says so. ChangeGatherer says what somebody's pull request would do.
//
// It reads Git and Argo CD, never the forge. What strangers wrote is evaluated and rendered in a child
// process with limits alone.
package effects
