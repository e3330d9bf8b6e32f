package argocd

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/liftlock/liftlock/internal/promotion/verification"
)

// wireOperation is the running or last operation of an Application.
type wireOperation struct {
	Operation struct {
		InitiatedBy struct {
			Username  string `json:"username"`
			Automated bool   `json:"automated"`
		} `json:"initiatedBy"`
		Sync struct {
			wireRevisions
			DryRun           bool              `json:"dryRun"`
			Resources        []json.RawMessage `json:"resources"`
			Manifests        []json.RawMessage `json:"manifests"`
			SelfHealAttempts int64             `json:"autoHealAttemptsCount"`
		} `json:"sync"`
		Retry struct {
			Limit int64 `json:"limit"`
		} `json:"retry"`
	} `json:"operation"`
	Phase      string `json:"phase"`
	Message    string `json:"message"`
	SyncResult *struct {
		wireRevisions
		Resources []wireSyncResult `json:"resources"`
	} `json:"syncResult"`
	StartedAt  *time.Time `json:"startedAt"`
	FinishedAt *time.Time `json:"finishedAt"`
	RetryCount int64      `json:"retryCount"`
}

// wireSyncResult is what an operation came to for one resource or hook.
type wireSyncResult struct {
	Group     string `json:"group"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Status    string `json:"status"`
	Message   string `json:"message"`
	HookType  string `json:"hookType"`
	HookPhase string `json:"hookPhase"`
}

// wireDeployment is an entry of an Application's history. Argo CD writes one for a
// sync that was of the whole Application, no dry run, and succeeded.
type wireDeployment struct {
	wireRevisions
	DeployedAt *time.Time        `json:"deployedAt"`
	Source     json.RawMessage   `json:"source"`
	Sources    []json.RawMessage `json:"sources"`
}

// hasSources says that a deployment was of the Application's present sources. For the output of a
// hydrator that isn't known.
func (w *wireApplication) hasSources(h *wireDeployment) bool {
	switch {
	case w.Spec.SourceHydrator != nil:
		return false
	case len(w.Spec.Sources) > 0:
		return slices.EqualFunc(w.Spec.Sources, h.Sources, equalIgnoringEmpty)
	}
	return equalIgnoringEmpty(w.Spec.Source, h.Source)
}

func (w *wireApplication) lastOperation() *verification.Operation {
	s := w.Status.OperationState
	if s == nil {
		return nil
	}
	// The result names what was synced; until there is one (it is dropped
	// before a retry), the request does.
	request := &s.Operation.Sync
	revisions := request.allRevisions()
	if s.SyncResult != nil && len(s.SyncResult.allRevisions()) > 0 {
		revisions = s.SyncResult.allRevisions()
	}
	op := &verification.Operation{
		Phase: s.Phase, Message: clipMessage(s.Message), Revisions: revisions,
		StartedAt: timeOrZero(s.StartedAt), Retries: s.RetryCount, RetryLimit: s.Operation.Retry.Limit,
		By: clipMessage(s.Operation.InitiatedBy.Username), Automated: s.Operation.InitiatedBy.Automated, DryRun: request.DryRun,
		Local:   len(request.Manifests) > 0,
		Partial: len(request.Resources) > 0, SelfHealAttempts: request.SelfHealAttempts, Results: s.worstResults(),
	}
	// Between two of its own retries Argo CD leaves a running sync with the time of the last failure.
	if s.Phase != "Running" && s.Phase != "Terminating" {
		op.FinishedAt = timeOrZero(s.FinishedAt)
	}
	return op
}

// worstResults are the operation's results that say why it ended as it did: those that
// failed, and those that were left out. All others are as one expects.
func (w *wireOperation) worstResults() []verification.SyncResult {
	if w.SyncResult == nil {
		return nil
	}
	var out []verification.SyncResult
	for _, r := range w.SyncResult.Resources {
		result := verification.SyncResult{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Status: r.Status,
			Hook: r.HookType, Phase: r.HookPhase}
		if !result.HasFailed() && r.Status != "PruneSkipped" {
			continue
		}
		result.Message = clipMessage(r.Message)
		out = append(out, result)
	}
	slices.SortStableFunc(out, func(a, b verification.SyncResult) int {
		return cmp.Compare(resultRank(a), resultRank(b))
	})
	return slices.Clip(out[:min(len(out), maxResults)])
}

func resultRank(r verification.SyncResult) int {
	if r.HasFailed() {
		return 0
	}
	return 1
}

// lastDeployments are the newest entries of the history, which Argo CD keeps with the
// oldest first.
func (w *wireApplication) lastDeployments() []verification.Deployment {
	var out []verification.Deployment
	for i := len(w.Status.History) - 1; i >= 0 && len(out) < maxDeployed; i-- {
		h := w.Status.History[i]
		if revisions := h.allRevisions(); len(revisions) > 0 {
			out = append(out, verification.Deployment{Revisions: revisions, At: timeOrZero(h.DeployedAt), OfSpec: w.hasSources(&h)})
		}
	}
	return out
}
