package gitlab

import "github.com/liftlock/liftlock/internal/forge/rest"

// noDeployments: GitLab's deployments are those of its own environments and jobs.
var noDeployments = rest.NoDeployments{Why: "Liftlock keeps no deployments in GitLab"}
