package config

import "time"

// CallTimeout bounds each call that leaves the process, so that one that hangs does not cost the lease.
const CallTimeout = 15 * time.Second
