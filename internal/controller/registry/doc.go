// Package registry reads what container images say of the sources that they were built from, in the
// annotations and labels that the OCI image specification has for that. It also lists their tags,
// for who decides which of them comes in.
//
// Only the registries that the server's file names are reached. Answers are bounded, and every look
// has a time; a registry that doesn't answer is left alone for a while. Its memory is bounded, and
// not for ever: a tag may be pushed again. A registry's own limits are kept to, with a part of them
// left to others.
package registry
