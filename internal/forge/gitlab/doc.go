// Package gitlab is the forge driver for GitLab, of gitlab.com or one's own, over its REST API with
// an access token. It is the only place that knows GitLab's client.
//
// It translates, and finds out what GitLab's API doesn't say. An approval carries no commit, so the
// driver searches the merge request's earlier heads for the approved one. A commit carries
// addresses and no accounts, and a webhook's token isn't shown again. Where something can't be
// told, the answer is the one with which a gate waits. Projects are found once by their path and
// called by their number from then on, as GitLab takes no writes by a path that has moved. It
// doesn't retry and decides nothing.
//
// A status belongs to a pipeline, not to a commit alone. The driver sets it in the pipeline that
// the merge request goes by, and again in one that comes later.
//
// GitLab can't do some things. It has no word for a status that failed by an error. It requests no
// reviews of groups, and no second review of an account that has reviewed. The project chooses how
// a merge request is merged, so a method that isn't the project's is refused before anything lands.
// It keeps no status of a commit that is a fork's alone. An external status check that isn't
// answered within two minutes has failed to it, so the driver answers none. A commit that lands by
// a merge train has a message of its own. A merge's push is like any other. Where an owner has
// deleted its merge request since, only the account that merged it and the authors that its commits
// name are known. It also acts upon lines of texts that begin with a slash. Lines of ours are
// written with a backslash before the slash, which isn't shown and is taken off again when they are
// read.
//
// The following isn't verified against a GitLab, but held against its own description and pages
// (where there is one, deploy/lab/gitlab.sh runs the contract on it):
//
//   - that the head of a merge request which is closed or merged stays what it was when its branch
//     is used again;
//   - that times of approvals and of versions come from one clock, and that GitLab's notes of its
//     own say "approved this merge request" and "requested changes" in every edition;
//   - which of the accounts that GET /users shows to a token without an administrator's rights can
//     be found by an address, and the order of the commits of repository/compare;
//   - that a hook's description is kept and shown (it carries a fingerprint of the token); where it
//     isn't, the hook is written again each time;
//   - that a test of a hook that GitLab has disabled enables it again in every edition;
//   - that a hook's events are listed newest first, and those without an answer too;
//   - that merge_when_pipeline_succeeds is true for a member of a merge train, and that canceling
//     it takes the member off in every edition;
//   - the meaning of merge_commit_sha and squash_commit_sha where a train lands by fast-forward;
//   - that quick actions are found as the source of GitLab's Extractor has it, in every edition,
//     and that a comment keeps a line with another word;
//   - that approval_state shows its rules to accounts that may only write;
//   - how Git is answered at the path that a project had before it was moved;
//   - that a status with pipeline_id joins that pipeline in every edition, and that of merged
//     results on the commit that a merge would make;
//   - how soon after joining and leaving a train that is shown; which pipeline a status without
//     pipeline_id joins where a commit has several; that head_pipeline is the one by which
//     "pipelines must succeed" goes;
//   - that a refusal for too many calls of one kind has the words by which it is known;
//   - that a project's events show every push to its readers, merges too, soon after it;
//   - that a merge request is locked from before its branch moves until it is merged;
//   - that all answers of the API but 204, 429 and 5xx are sent as application/json in every
//     edition: the driver takes any other for a proxy's in between;
//   - the length of every list beyond 10,000 entries.
package gitlab
