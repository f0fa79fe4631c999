package config

import "time"

// CallTimeout bounds each call that leaves the process, so that a hanging call does not cost the
// lease.
const CallTimeout = 15 * time.Second
