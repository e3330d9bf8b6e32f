// Package plan says which promotions would open now, and why the others don't, from a repository's
// files and history alone: no server, no forge, no Argo CD.
//
// It is the controller: the same facts and the same decision. The facts come from a mirror with the
// checkout's branches, a forge without pull requests and an empty store. It decides nothing itself
// and opens nothing.
//
// It assumes what Git can't tell, and says so once. Every release is healthy where it is and was.
// No pull request of Liftlock's is open or was closed by a person, and commits with Liftlock's
// trailers are Liftlock's. So a plan may promise more than the server does, never another
// promotion.
package plan
