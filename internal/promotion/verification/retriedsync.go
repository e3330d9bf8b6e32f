package verification

import "time"

// RetrySync is the memory with which a target is judged after a person had another sync of a commit
// asked for. The last sync's result no longer counts, and the verdict asks for the new one until it
// has begun. Whatever the target does after that is new, however long ago the commit landed. Its
// state before the first sync stays known, and so does that this sync may have caused the trouble.
func RetrySync(commit, release string, u *Unsynced, now time.Time) Memory {
	after := normalizeTime(u.LastSync)
	return Memory{
		Commit: commit, Release: release, RetriedAfter: &after, HeldUpAt: normalizeTime(now),
		SyncTried: u.SyncTried, UnhealthyBefore: u.UnhealthyBefore, MissingBefore: u.MissingBefore,
	}
}

// StartAgain is the memory with which a target is judged after a person had its verification
// started again without another sync. Nothing counts any more but its state before the commit's
// sync, of which the next looks tell nothing. nil: not even that is known.
func StartAgain(commit, release string, v *Verdict) *Memory {
	if !v.UnhealthyBefore {
		return nil
	}
	return &Memory{Commit: commit, Release: release, UnhealthyBefore: !v.OnlyMissingBefore, MissingBefore: v.OnlyMissingBefore}
}

// awaitsRetriedSync says that a person has a sync asked for and no other has begun since.
func (j *judgement) awaitsRetriedSync() bool {
	return j.mem.RetriedAfter != nil && j.lastSyncBegan().Equal(*j.mem.RetriedAfter)
}

// lastSyncBegan is when the last operation began; zero where there was none.
func (j *judgement) lastSyncBegan() time.Time {
	if j.app.Operation == nil {
		return time.Time{}
	}
	return normalizeTime(j.app.Operation.StartedAt)
}

// findUnsynced says of a target that came to its end what another sync of the commit, which it
// never had, could mend. A difference after it had been synced is drift, which people made.
func (j *judgement) findUnsynced(v *Verdict) *Unsynced {
	hasEnded := v.State == Failed || v.State == Degraded
	if !hasEnded || !j.compared || j.hasBeenSynced() {
		return nil
	}
	if j.queued || j.app.isOperating() {
		return nil
	}
	if j.app.SyncStatus == synced && j.mem.SyncFailedSince.IsZero() && !j.awaitsRetriedSync() {
		return nil // nothing differs, and no sync failed
	}
	return &Unsynced{
		LastSync: j.lastSyncBegan(), Barred: j.whyNotRetried(),
		SyncTried: j.mem.SyncTried, UnhealthyBefore: j.mem.UnhealthyBefore, MissingBefore: j.mem.MissingBefore,
	}
}

// whyNotRetried says why a person can't have Liftlock ask for a sync, and what to do instead;
// empty: they can. Where people do all syncs, this one is theirs too.
func (j *judgement) whyNotRetried() string {
	switch {
	case j.e.Window != nil:
		return "a sync window of the project " + j.e.Window.Project + " keeps it from being synced" + j.describeOpening() +
			": /liftlock retry once it lets syncs through"
	case j.e.Unmarked != "":
		return "Liftlock syncs a plain Application only where its annotation " + MarkAnnotation + " is " + j.e.Unmarked +
			": sync it in Argo CD"
	case !j.Trigger && !j.app.AutoSync && !j.usesRollingSync():
		return "it has no automated sync policy, and verify.sync is wait: sync it in Argo CD"
	}
	return ""
}
