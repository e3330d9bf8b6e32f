// Package branch says what the branches of tracked repositories say: the pipelines and their
// targets (TargetGatherer), the releases that environments hold (ReleaseReader), and where those
// came from (GitGatherer). It has what every other source builds on: a Repository with its marks,
// the Argo CDs by name, and the Basis of an evaluation.
//
// A Snapshot is the whole content of one commit of the tracked branch; it is built once a commit.
package branch
