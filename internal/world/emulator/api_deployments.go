package emulator

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// deployment is one of the Deployments API.
type deployment struct {
	id                    int64
	sha, ref, task        string
	environment           string
	transient, production bool
	description           string
	payload               json.RawMessage
	creator               *account
	at                    time.Time
	statuses              []*deploymentStatus // oldest first
}

type deploymentStatus struct {
	id                     int64
	state, description     string
	logURL, environmentURL string
	creator                *account
	at                     time.Time
}

// state is the newest one; empty before the first.
func (d *deployment) state() string {
	if len(d.statuses) == 0 {
		return ""
	}
	return d.statuses[len(d.statuses)-1].state
}

type wireDeployment struct {
	ID          int64           `json:"id"`
	NodeID      string          `json:"node_id"`
	URL         string          `json:"url"`
	SHA         string          `json:"sha"`
	Ref         string          `json:"ref"`
	Task        string          `json:"task"`
	Payload     json.RawMessage `json:"payload"`
	Original    string          `json:"original_environment"`
	Environment string          `json:"environment"`
	Description *string         `json:"description"`
	Creator     *wireUser       `json:"creator"`
	CreatedAt   time.Time       `json:"created_at"`
	UpdatedAt   time.Time       `json:"updated_at"`
	Statuses    string          `json:"statuses_url"`
	Repository  string          `json:"repository_url"`
	Transient   bool            `json:"transient_environment"`
	Production  bool            `json:"production_environment"`
}

type wireDeploymentStatus struct {
	ID             int64     `json:"id"`
	NodeID         string    `json:"node_id"`
	URL            string    `json:"url"`
	State          string    `json:"state"`
	Creator        *wireUser `json:"creator"`
	Description    string    `json:"description"`
	Environment    string    `json:"environment"`
	TargetURL      string    `json:"target_url"`
	LogURL         string    `json:"log_url"`
	EnvironmentURL string    `json:"environment_url"`
	CreatedAt      time.Time `json:"created_at"`
	UpdatedAt      time.Time `json:"updated_at"`
	Deployment     string    `json:"deployment_url"`
	Repository     string    `json:"repository_url"`
}

func (c *call) deploymentURL(d *deployment) string {
	return c.repoURL(c.repo) + "/deployments/" + strconv.FormatInt(d.id, 10)
}

func (c *call) wireDeployment(d *deployment) wireDeployment {
	return wireDeployment{
		ID: d.id, NodeID: nodeID("DE", d.id), URL: c.deploymentURL(d), SHA: d.sha, Ref: d.ref, Task: d.task, Payload: d.payload,
		Original: d.environment, Environment: d.environment,
		Description: orNull(d.description), Creator: c.wireUser(d.creator), CreatedAt: d.at, UpdatedAt: d.at, Statuses: c.deploymentURL(d) +
			"/statuses", Repository: c.repoURL(c.repo),
		Transient: d.transient, Production: d.production,
	}
}

func (c *call) wireDeploymentStatus(d *deployment, s *deploymentStatus) wireDeploymentStatus {
	return wireDeploymentStatus{
		ID: s.id, NodeID: nodeID("DES", s.id), URL: c.deploymentURL(d) + "/statuses/" + strconv.FormatInt(s.id, 10), State: s.state,
		Creator: c.wireUser(s.creator), Description: s.description,
		Environment: d.environment, TargetURL: s.logURL, LogURL: s.logURL, EnvironmentURL: s.environmentURL, CreatedAt: s.at,
		UpdatedAt: s.at, Deployment: c.deploymentURL(d), Repository: c.repoURL(c.repo),
	}
}

// withDeployment finds the deployment of the path.
func withDeployment(answer func(*call, *deployment) (any, error)) handler {
	return func(c *call) (any, error) {
		id, err := c.pathNumber("id")
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(c.repo.deployments, func(d *deployment) bool { return d.id == id })
		if i < 0 {
			return nil, notFound()
		}
		return answer(c, c.repo.deployments[i])
	}
}

// listDeployments filters by sha, ref, task and environment, newest first.
func listDeployments(c *call) (any, error) {
	q := c.r.URL.Query()
	fits := func(key, value string) bool {
		return q.Get(key) == "" || q.Get(key) == "none" || strings.EqualFold(q.Get(key), value)
	}
	var found []*deployment
	for _, d := range slices.Backward(c.repo.deployments) {
		if fits("sha", d.sha) && fits("ref", d.ref) && fits("task", d.task) && fits("environment", d.environment) {
			found = append(found, d)
		}
	}
	return paginateAs(c, found, c.wireDeployment), nil
}

// createDeployment follows "Create a deployment": without required_contexts every status of
// the commit must be success. A commit is merged into by nothing, so auto_merge does nothing.
func createDeployment(c *call) (any, error) {
	in := struct {
		Ref         string          `json:"ref"`
		Task        string          `json:"task"`
		Contexts    *[]string       `json:"required_contexts"`
		Payload     json.RawMessage `json:"payload"`
		Environment string          `json:"environment"`
		Description string          `json:"description"`
		Transient   bool            `json:"transient_environment"`
		Production  *bool           `json:"production_environment"`
	}{}
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	if in.Ref == "" {
		return nil, invalidField("Deployment", "ref", "missing_field", "")
	}
	sha, err := c.repo.git.resolveRevision(in.Ref)
	if errors.Is(err, errNoObject) {
		return nil, newAPIError(http.StatusUnprocessableEntity, "No ref found for: %s", in.Ref)
	}
	if err != nil {
		return nil, err
	}
	if len([]rune(in.Description)) > maxDescription {
		return nil, invalidField("Deployment", "description", "custom", "description is too long (maximum is 140 characters)")
	}
	if c.lacksContext(sha, in.Contexts) {
		return nil, newAPIError(http.StatusConflict, "Conflict: Commit status checks failed for %s.", in.Ref)
	}
	if len(in.Payload) == 0 {
		in.Payload = json.RawMessage(`{}`)
	}
	d := &deployment{id: c.nextID(), sha: sha, ref: in.Ref, task: cmp.Or(in.Task, "deploy"),
		environment: cmp.Or(in.Environment, "production"), transient: in.Transient,
		description: in.Description, payload: in.Payload, creator: c.user, at: c.now()}
	if d.production = d.environment == "production"; in.Production != nil {
		d.production = *in.Production
	}
	c.repo.deployments = append(c.repo.deployments, d)
	c.status = http.StatusCreated
	return c.wireDeployment(d), nil
}

// lacksContext says that a required status isn't success; nil requires all that there are.
func (c *call) lacksContext(sha string, required *[]string) bool {
	states := map[string]string{}
	for _, s := range c.latestStatuses(c.repo, sha) {
		states[s.context] = s.state
	}
	if required == nil {
		all := sortedKeys(states)
		required = &all
	}
	return slices.ContainsFunc(*required, func(name string) bool { return states[name] != "success" })
}

// listDeploymentStatuses are all of a deployment, newest first.
func listDeploymentStatuses(c *call, d *deployment) (any, error) {
	all := slices.Clone(d.statuses)
	slices.Reverse(all)
	return paginateAs(c, all, func(s *deploymentStatus) wireDeploymentStatus { return c.wireDeploymentStatus(d, s) }), nil
}

// createDeploymentStatus follows "Create a deployment status". With auto_inactive, which is the
// default, a success makes the environment's earlier successes inactive, unless they are transient
// or production's.
func createDeploymentStatus(c *call, d *deployment) (any, error) {
	var in struct {
		State          string `json:"state"`
		LogURL         string `json:"log_url"`
		Description    string `json:"description"`
		EnvironmentURL string `json:"environment_url"`
		AutoInactive   *bool  `json:"auto_inactive"`
	}
	if err := c.decodeBody(&in); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"error", "failure", "inactive", "in_progress", "queued", "pending", "success"}, in.State) {
		return nil, invalidField("DeploymentStatus", "state", "custom", "state is not included in the list")
	}
	if len([]rune(in.Description)) > maxDescription {
		return nil, invalidField("DeploymentStatus", "description", "custom", "description is too long (maximum is 140 characters)")
	}
	s := &deploymentStatus{id: c.nextID(), state: in.State, description: in.Description, logURL: in.LogURL,
		environmentURL: in.EnvironmentURL, creator: c.user, at: c.now()}
	d.statuses = append(d.statuses, s)
	if in.State == "success" && (in.AutoInactive == nil || *in.AutoInactive) {
		for _, o := range c.repo.deployments {
			isReplaced := o.id < d.id && o.environment == d.environment && o.state() == "success"
			if isReplaced && !o.transient && !o.production {
				o.statuses = append(o.statuses, &deploymentStatus{id: c.nextID(), state: "inactive", creator: c.user, at: c.now()})
			}
		}
	}
	c.status = http.StatusCreated
	return c.wireDeploymentStatus(d, s), nil
}
