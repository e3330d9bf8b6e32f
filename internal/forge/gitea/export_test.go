package gitea

import "time"

// SetCheckTime sets for how long a pull request that isn't mergeable is thought to be checked.
func (d *Driver) SetCheckTime(t time.Duration) { d.checkTime = t }
