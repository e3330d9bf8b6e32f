// Package registry reads what container images say of the sources that they were built
// from, in the annotations and labels that the OCI image specification has for that.
//
// Only the registries that the server's file names are reached. Answers are bounded, and
// every look has a time; a registry that doesn't answer is left alone for a while. What is
// remembered is bounded, and not for ever: a tag may be pushed again.
package registry
