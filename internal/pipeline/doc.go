// Package pipeline is the pipeline file: its types, defaults and rules, and how it is read from a
// repository.
//
// A pipeline is only returned when everything in it is valid; otherwise all that is wrong is
// reported with file and line. Keys that the file format has and Liftlock doesn't do yet are
// refused by name, never ignored.
//
// Other packages know which targets exist and what the file's templates yield (appset), which file
// holds a carried field (fieldedit), and which revision's file is in force (the controller). The
// invariant: a [Pipeline] from this package has its defaults filled in, names that are safe in
// branch names, and environments that form a graph without cycles.
//
// docs/pipeline.schema.json and docs/pipeline-reference.md are generated from the types and their
// comments: go test ./internal/pipeline -update.
package pipeline
