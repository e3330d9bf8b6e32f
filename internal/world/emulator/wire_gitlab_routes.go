package emulator

import "slices"

const (
	projectPath      = "/projects/{id}"
	mergeRequestPath = projectPath + "/merge_requests/{merge_request_iid}"
	notesPath        = projectPath + "/merge_requests/{noteable_id}/notes"
	awardsPath       = mergeRequestPath + "/notes/{note_id}/award_emoji"
)

// gitlabRoutes is GitLab's REST API, by area, without /api/v4; the paths have the names of
// GitLab's own description.
var gitlabRoutes = router(slices.Concat(gitlabAccountRoutes, gitlabProjectRoutes, mergeRequestRoutes, approvalRoutes, gitlabNoteRoutes,
	gitlabHistoryRoutes, gitlabHookRoutes))

var gitlabAccountRoutes = router{
	{pattern: "GET /user", handle: func(c *call) (any, error) { return c.gitlabUserInFull(c.user), nil }},
	{pattern: "GET /users", handle: listGitLabUsers},
	{pattern: "GET /users/{id}", handle: getGitLabUser},
	{pattern: "GET /personal_access_tokens/self", handle: getOwnToken},
	{pattern: "GET /version", handle: getGitLabVersion},
	{pattern: "GET /metadata", handle: getGitLabVersion},
	{pattern: "GET /groups/{id}", handle: withGroup(getGroup)},
	{pattern: "GET /groups/{id}/members/all", handle: withGroup(listGroupMembers)},
	{pattern: "GET /groups/{id}/members/all/{user_id}", handle: withGroup(getGroupMember)},
}

var gitlabProjectRoutes = router{
	{pattern: "GET " + projectPath, permission: Read, handle: func(c *call) (any, error) { return c.gitlabProject(c.repo, c.user), nil }},
	{pattern: "GET " + projectPath + "/members/all/{user_id}", permission: Read, handle: getProjectMember},
	{pattern: "GET " + projectPath + "/protected_branches", permission: Admin, handle: listProtectedBranches},
	{pattern: "GET " + projectPath + "/protected_branches/{name}", permission: Admin, handle: getProtectedBranch},
	{pattern: "GET " + projectPath + "/repository/branches/{branch}", permission: Read, handle: getGitLabBranch},
	{pattern: "DELETE " + projectPath + "/repository/branches/{branch}", permission: Write, movesRefs: true, handle: deleteGitLabBranch},
	{pattern: "GET " + projectPath + "/merge_trains", permission: Read, handle: listCars},
	{pattern: "GET " + projectPath + "/merge_trains/{target_branch}", permission: Read, handle: listCars},
	{pattern: "GET " + projectPath + "/merge_trains/merge_requests/{merge_request_iid}", permission: Read,
		handle: withMergeRequest(getCar)},
	{pattern: "POST " + projectPath + "/merge_trains/merge_requests/{merge_request_iid}", permission: Write,
		handle: withMergeRequest(addCar)},
}

var mergeRequestRoutes = router{
	{pattern: "GET " + projectPath + "/merge_requests", permission: Read, handle: listMergeRequests},
	{pattern: "POST " + projectPath + "/merge_requests", permission: Read, movesRefs: true, handle: createMergeRequest},
	{pattern: "GET " + mergeRequestPath, permission: Read, handle: withMergeRequest(getMergeRequest)},
	{pattern: "PUT " + mergeRequestPath, permission: Read, movesRefs: true, handle: withMergeRequest(updateMergeRequest)},
	{pattern: "PUT " + mergeRequestPath + "/merge", permission: Read, movesRefs: true, handle: withMergeRequest(acceptMergeRequest)},
	{pattern: "PUT " + mergeRequestPath + "/rebase", permission: Read, movesRefs: true, handle: withMergeRequest(rebaseMergeRequest)},
	{pattern: "POST " + mergeRequestPath + "/cancel_merge_when_pipeline_succeeds", permission: Read,
		handle: withMergeRequest(cancelAutoMerge)},
	{pattern: "GET " + mergeRequestPath + "/versions", permission: Read, handle: withMergeRequest(listVersions)},
	{pattern: "GET " + mergeRequestPath + "/commits", permission: Read, handle: withMergeRequest(listMergeRequestCommits)},
	{pattern: "GET " + mergeRequestPath + "/reviewers", permission: Read, handle: withMergeRequest(listReviewers)},
}

var approvalRoutes = router{
	{pattern: "GET " + projectPath + "/approvals", permission: Read, handle: getApprovalSettings},
	{pattern: "GET " + mergeRequestPath + "/approvals", permission: Read, handle: withMergeRequest(getApprovals)},
	{pattern: "GET " + mergeRequestPath + "/approval_state", permission: Read, handle: withMergeRequest(getApprovalState)},
	{pattern: "POST " + mergeRequestPath + "/approve", permission: Read, handle: withMergeRequest(approveMergeRequest)},
	{pattern: "POST " + mergeRequestPath + "/unapprove", permission: Read, handle: withMergeRequest(unapproveMergeRequest)},
}

var gitlabNoteRoutes = router{
	{pattern: "GET " + notesPath, permission: Read, handle: withMergeRequest(listNotes)},
	{pattern: "POST " + notesPath, permission: Read, movesRefs: true, handle: withMergeRequest(createNote)},
	{pattern: "GET " + notesPath + "/{note_id}", permission: Read, handle: withNote(getNote)},
	{pattern: "PUT " + notesPath + "/{note_id}", permission: Read, movesRefs: true, handle: withNote(updateNote)},
	{pattern: "DELETE " + notesPath + "/{note_id}", permission: Read, handle: withNote(deleteNote)},
	{pattern: "GET " + awardsPath, permission: Read, handle: withNote(listAwards)},
	{pattern: "POST " + awardsPath, permission: Read, handle: withNote(createAward)},
	{pattern: "DELETE " + awardsPath + "/{award_id}", permission: Read, handle: withNote(deleteAward)},
	{pattern: "GET " + mergeRequestPath + "/discussions", permission: Read, handle: withMergeRequest(listDiscussions)},
	{pattern: "POST " + mergeRequestPath + "/discussions", permission: Read, movesRefs: true, handle: withMergeRequest(createDiscussion)},
	{pattern: "PUT " + mergeRequestPath + "/discussions/{discussion_id}", permission: Write, handle: withMergeRequest(resolveDiscussion)},
}

// gitlabHistoryRoutes tell of commits. GitLab's own names have the branch or tag as {sha} too.
var gitlabHistoryRoutes = router{
	{pattern: "POST " + projectPath + "/statuses/{sha}", permission: Write, movesRefs: true, handle: createCommitStatus},
	{pattern: "GET " + projectPath + "/repository/commits/{sha}/statuses", permission: Read, handle: withGitLabCommit(listCommitStatuses)},
	{pattern: "GET " + projectPath + "/repository/commits/{sha}", permission: Read, handle: withGitLabCommit(getGitLabCommit)},
	{pattern: "GET " + projectPath + "/events", permission: Read, handle: listProjectEvents},
	{pattern: "GET " + projectPath + "/repository/compare", permission: Read, handle: compareGitLabCommits},
	{pattern: "GET " + projectPath + "/repository/commits/{sha}/merge_requests", permission: Read,
		handle: withGitLabCommit(listCommitMergeRequests)},
}

var gitlabHookRoutes = router{
	{pattern: "GET " + projectPath + "/hooks", permission: Admin, handle: listGitLabHooks},
	{pattern: "POST " + projectPath + "/hooks", permission: Admin, handle: createGitLabHook},
	{pattern: "GET " + projectPath + "/hooks/{hook_id}", permission: Admin, handle: withGitLabHook(getGitLabHook)},
	{pattern: "PUT " + projectPath + "/hooks/{hook_id}", permission: Admin, handle: withGitLabHook(updateGitLabHook)},
	{pattern: "DELETE " + projectPath + "/hooks/{hook_id}", permission: Admin, handle: withGitLabHook(deleteGitLabHook)},
	{pattern: "GET " + projectPath + "/hooks/{hook_id}/events", permission: Admin, handle: withGitLabHook(listHookEvents)},
	{pattern: "POST " + projectPath + "/hooks/{hook_id}/events/{hook_log_id}/resend", permission: Admin,
		handle: withGitLabHook(resendHookEvent)},
	{pattern: "POST " + projectPath + "/hooks/{hook_id}/test/{trigger}", permission: Admin, handle: withGitLabHook(testGitLabHook)},
}
