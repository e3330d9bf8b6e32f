package emulator

import "slices"

// routes is the forge's REST API, by area. A path that isn't here is GitHub's 404.
var routes = router(slices.Concat(accountRoutes, appRoutes, teamRoutes, repoRoutes, gitDataRoutes, rulesRoutes, historyRoutes, pullRoutes,
	commentRoutes, labelRoutes, statusRoutes, deploymentRoutes, hookRoutes))

const repoPath = "/repos/{owner}/{repo}"

var accountRoutes = []route{
	{pattern: "GET /user", handle: func(c *call) (any, error) {
		if c.token != nil {
			return nil, notPermitted(c) // an App is nobody
		}
		return c.wireUser(c.user), nil
	}},
	{pattern: "GET /users/{login}", handle: func(c *call) (any, error) {
		a, err := c.findAccount(c.r.PathValue("login"))
		if err != nil {
			return nil, notFound()
		}
		return c.wireUser(a), nil
	}},
}

var teamRoutes = []route{
	{pattern: "GET /orgs/{org}/teams/{slug}", handle: getTeam},
	{pattern: "GET /orgs/{org}/teams/{slug}/members", handle: listTeamMembers},
	{pattern: "GET /orgs/{org}/teams/{slug}/memberships/{login}", handle: getTeamMembership},
}

var repoRoutes = []route{
	{pattern: "GET " + repoPath, permission: Read, handle: func(c *call) (any, error) { return c.wireRepo(c.repo, c.user), nil }},
	{pattern: "GET " + repoPath + "/collaborators/{login}/permission", permission: Read, handle: getPermission},
	{pattern: "GET " + repoPath + "/git/ref/{ref...}", permission: Read, handle: getRef},
	{pattern: "DELETE " + repoPath + "/git/refs/{ref...}", permission: Write, movesRefs: true, handle: deleteRef},
	{pattern: "GET " + repoPath + "/labels", permission: Read, handle: listLabels},
	{pattern: "POST " + repoPath + "/labels", permission: Write, handle: createLabel},
}

// historyRoutes tell who made and moved what.
var historyRoutes = []route{
	{pattern: "GET " + repoPath + "/activity", permission: Read, handle: listActivity},
	{pattern: "GET " + repoPath + "/commits/{sha}", permission: Read, handle: withCommit(getCommit)},
	{pattern: "GET " + repoPath + "/commits/{sha}/pulls", permission: Read, handle: withCommit(commitPulls)},
	{pattern: "GET " + repoPath + "/compare/{basehead}", permission: Read, handle: compareCommits},
	{pattern: "POST /graphql", handle: answerGraphQL},
}

var pullRoutes = []route{
	{pattern: "GET " + repoPath + "/pulls", permission: Read, handle: listPulls},
	{pattern: "POST " + repoPath + "/pulls", permission: Read, handle: createPull},
	{pattern: "GET " + repoPath + "/pulls/{number}", permission: Read, handle: withPull(getPull)},
	{pattern: "PATCH " + repoPath + "/pulls/{number}", permission: Read, handle: withPull(patchPull)},
	{pattern: "GET " + repoPath + "/pulls/{number}/merge", permission: Read, handle: withPull(isMerged)},
	{pattern: "PUT " + repoPath + "/pulls/{number}/merge", permission: Write, movesRefs: true, handle: withPull(putMerge)},
	{pattern: "PUT " + repoPath + "/pulls/{number}/update-branch", permission: Write, movesRefs: true, handle: withPull(updateBranch)},
	{pattern: "GET " + repoPath + "/pulls/{number}/commits", permission: Read, handle: withPull(pullCommits)},
	{pattern: "GET " + repoPath + "/pulls/{number}/reviews", permission: Read, handle: withPull(listReviews)},
	{pattern: "POST " + repoPath + "/pulls/{number}/reviews", permission: Read, handle: withPull(createReview)},
	{pattern: "GET " + repoPath + "/pulls/{number}/requested_reviewers", permission: Read, handle: withPull(listReviewRequests)},
	{pattern: "POST " + repoPath + "/pulls/{number}/requested_reviewers", permission: Write, handle: withPull(requestReviews)},
	{pattern: "DELETE " + repoPath + "/pulls/{number}/requested_reviewers", permission: Write, handle: withPull(removeReviewRequests)},
	{pattern: "PUT " + repoPath + "/pulls/{number}/reviews/{id}/dismissals", permission: Write, handle: withPull(dismissReview)},
}

// commentRoutes come before those that have a number where these have "comments".
var commentRoutes = []route{
	{pattern: "GET " + repoPath + "/issues/comments", permission: Read, handle: allComments},
	{pattern: "GET " + repoPath + "/issues/comments/{id}", permission: Read, handle: withComment(getComment)},
	{pattern: "PATCH " + repoPath + "/issues/comments/{id}", permission: Read, handle: withComment(patchComment)},
	{pattern: "DELETE " + repoPath + "/issues/comments/{id}", permission: Read, handle: withComment(removeComment)},
	{pattern: "GET " + repoPath + "/issues/comments/{id}/reactions", permission: Read, handle: withComment(listReactions)},
	{pattern: "POST " + repoPath + "/issues/comments/{id}/reactions", permission: Read, handle: withComment(createReaction)},
	{pattern: "DELETE " + repoPath + "/issues/comments/{id}/reactions/{reaction}", permission: Read, handle: withComment(deleteReaction)},
	{pattern: "GET " + repoPath + "/issues/{number}/comments", permission: Read, handle: withPull(listComments)},
	{pattern: "POST " + repoPath + "/issues/{number}/comments", permission: Read, handle: withPull(createComment)},
}

var labelRoutes = []route{
	{pattern: "GET " + repoPath + "/issues/{number}/labels", permission: Read, handle: withPull(pullLabels)},
	{pattern: "POST " + repoPath + "/issues/{number}/labels", permission: Write, handle: withPull(addLabels)},
	{pattern: "DELETE " + repoPath + "/issues/{number}/labels/{label...}", permission: Write, handle: withPull(removeLabel)},
}

var statusRoutes = []route{
	{pattern: "POST " + repoPath + "/statuses/{sha}", permission: Write, handle: withCommit(createStatus)},
	{pattern: "GET " + repoPath + "/commits/{sha}/statuses", permission: Read, handle: withCommit(listStatuses)},
	{pattern: "GET " + repoPath + "/commits/{sha}/status", permission: Read, handle: withCommit(combinedStatus)},
	{pattern: "GET " + repoPath + "/commits/{sha}/check-runs", permission: Read, handle: withCommit(listCheckRuns)},
}

var deploymentRoutes = []route{
	{pattern: "GET " + repoPath + "/deployments", permission: Read, handle: listDeployments},
	{pattern: "POST " + repoPath + "/deployments", permission: Write, handle: createDeployment},
	{pattern: "GET " + repoPath + "/deployments/{id}/statuses", permission: Read, handle: withDeployment(listDeploymentStatuses)},
	{pattern: "POST " + repoPath + "/deployments/{id}/statuses", permission: Write, handle: withDeployment(createDeploymentStatus)},
}

var hookRoutes = []route{
	{pattern: "GET " + repoPath + "/hooks", permission: Admin, handle: listHooks},
	{pattern: "POST " + repoPath + "/hooks", permission: Admin, handle: createHook},
	{pattern: "GET " + repoPath + "/hooks/{id}", permission: Admin, handle: withHook(getHook)},
	{pattern: "PATCH " + repoPath + "/hooks/{id}", permission: Admin, handle: withHook(patchHook)},
	{pattern: "DELETE " + repoPath + "/hooks/{id}", permission: Admin, handle: withHook(deleteHook)},
	{pattern: "POST " + repoPath + "/hooks/{id}/pings", permission: Admin, handle: withHook(pingHook)},
	{pattern: "GET " + repoPath + "/hooks/{id}/deliveries", permission: Admin, handle: withHook(listDeliveries)},
	{pattern: "GET " + repoPath + "/hooks/{id}/deliveries/{delivery}", permission: Admin, handle: withDelivery(getDelivery)},
	{pattern: "POST " + repoPath + "/hooks/{id}/deliveries/{delivery}/attempts", permission: Admin, handle: withDelivery(redeliver)},
}
