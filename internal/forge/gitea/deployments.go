package gitea

import "github.com/liftlock/liftlock/internal/forge/rest"

// noDeployments: neither Gitea nor Forgejo keeps any.
var noDeployments = rest.NoDeployments{Why: "Gitea keeps no deployments"}
