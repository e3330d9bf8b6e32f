// Package graph lays a pipeline's environments out as the directed graph that they
// are. It is pure: the same nodes give the same picture.
package graph
