// Package api speaks to the API of one Argo CD: its REST interface, over HTTP with the token of an
// account or of a project's role.
//
// It knows addresses, credentials, limits and errors. Its callers know what an answer means. It
// hands objects on as they came, but for resource trees, which are nowhere else.
//
// The invariants: the token leaves for the configured scheme and host only and is in no error. No
// answer is read without a bound on its size and on its time.
package api
