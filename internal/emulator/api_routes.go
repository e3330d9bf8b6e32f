package emulator

import "slices"

// routes is the forge's REST API, by area. A path that isn't here is GitHub's 404.
var routes = router(slices.Concat(accountRoutes, repoRoutes, pullRoutes, commentRoutes, labelRoutes, statusRoutes, hookRoutes))

const inRepo = "/repos/{owner}/{repo}"

var accountRoutes = []route{
	{pattern: "GET /user", answer: func(c *call) (any, error) { return c.wireUser(c.user), nil }},
	{pattern: "GET /users/{login}", answer: func(c *call) (any, error) {
		a, err := c.account(c.r.PathValue("login"))
		if err != nil {
			return nil, notFound()
		}
		return c.wireUser(a), nil
	}},
}

var repoRoutes = []route{
	{pattern: "GET " + inRepo, need: Read, answer: func(c *call) (any, error) { return c.wireRepo(c.repo, c.user), nil }},
	{pattern: "GET " + inRepo + "/collaborators/{login}/permission", need: Read, answer: getPermission},
	{pattern: "GET " + inRepo + "/commits/{sha}", need: Read, answer: getCommit},
	{pattern: "GET " + inRepo + "/commits/{sha}/pulls", need: Read, answer: commitPulls},
	{pattern: "GET " + inRepo + "/git/ref/{ref...}", need: Read, answer: getRef},
	{pattern: "DELETE " + inRepo + "/git/refs/{ref...}", need: Write, refs: true, answer: deleteRef},
	{pattern: "GET " + inRepo + "/labels", need: Read, answer: listLabels},
	{pattern: "POST " + inRepo + "/labels", need: Write, answer: createLabel},
}

var pullRoutes = []route{
	{pattern: "GET " + inRepo + "/pulls", need: Read, answer: listPulls},
	{pattern: "POST " + inRepo + "/pulls", need: Read, answer: createPull},
	{pattern: "GET " + inRepo + "/pulls/{number}", need: Read, answer: getPull},
	{pattern: "PATCH " + inRepo + "/pulls/{number}", need: Read, answer: patchPull},
	{pattern: "GET " + inRepo + "/pulls/{number}/merge", need: Read, answer: isMerged},
	{pattern: "PUT " + inRepo + "/pulls/{number}/merge", need: Write, refs: true, answer: putMerge},
	{pattern: "GET " + inRepo + "/pulls/{number}/commits", need: Read, answer: pullCommits},
	{pattern: "GET " + inRepo + "/pulls/{number}/reviews", need: Read, answer: listReviews},
	{pattern: "POST " + inRepo + "/pulls/{number}/reviews", need: Read, answer: createReview},
	{pattern: "PUT " + inRepo + "/pulls/{number}/reviews/{id}/dismissals", need: Write, answer: dismissReview},
}

// commentRoutes come before those that have a number where these have "comments".
var commentRoutes = []route{
	{pattern: "GET " + inRepo + "/issues/comments", need: Read, answer: allComments},
	{pattern: "GET " + inRepo + "/issues/comments/{id}", need: Read, answer: onComment(getComment)},
	{pattern: "PATCH " + inRepo + "/issues/comments/{id}", need: Read, answer: onComment(patchComment)},
	{pattern: "DELETE " + inRepo + "/issues/comments/{id}", need: Read, answer: onComment(removeComment)},
	{pattern: "GET " + inRepo + "/issues/comments/{id}/reactions", need: Read, answer: onComment(listReactions)},
	{pattern: "POST " + inRepo + "/issues/comments/{id}/reactions", need: Read, answer: onComment(createReaction)},
	{pattern: "DELETE " + inRepo + "/issues/comments/{id}/reactions/{reaction}", need: Read, answer: onComment(deleteReaction)},
	{pattern: "GET " + inRepo + "/issues/{number}/comments", need: Read, answer: listComments},
	{pattern: "POST " + inRepo + "/issues/{number}/comments", need: Read, answer: createComment},
}

var labelRoutes = []route{
	{pattern: "GET " + inRepo + "/issues/{number}/labels", need: Read, answer: pullLabels},
	{pattern: "POST " + inRepo + "/issues/{number}/labels", need: Write, answer: addLabels},
	{pattern: "DELETE " + inRepo + "/issues/{number}/labels/{label...}", need: Write, answer: removeLabel},
}

var statusRoutes = []route{
	{pattern: "POST " + inRepo + "/statuses/{sha}", need: Write, answer: createStatus},
	{pattern: "GET " + inRepo + "/commits/{sha}/statuses", need: Read, answer: listStatuses},
	{pattern: "GET " + inRepo + "/commits/{sha}/status", need: Read, answer: combinedStatus},
	{pattern: "GET " + inRepo + "/commits/{sha}/check-runs", need: Read, answer: listCheckRuns},
}

var hookRoutes = []route{
	{pattern: "GET " + inRepo + "/hooks", need: Admin, answer: listHooks},
	{pattern: "POST " + inRepo + "/hooks", need: Admin, answer: createHook},
	{pattern: "GET " + inRepo + "/hooks/{id}", need: Admin, answer: onHook(getHook)},
	{pattern: "PATCH " + inRepo + "/hooks/{id}", need: Admin, answer: onHook(patchHook)},
	{pattern: "DELETE " + inRepo + "/hooks/{id}", need: Admin, answer: onHook(deleteHook)},
	{pattern: "POST " + inRepo + "/hooks/{id}/pings", need: Admin, answer: onHook(pingHook)},
}
