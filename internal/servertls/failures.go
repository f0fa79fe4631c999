package servertls

// FailuresName and FailuresHelp describe the counter of failed handshakes, which each server has
// with its name as the label door.
const (
	FailuresName = "foresail_tls_failures_total"
	FailuresHelp = "Connections that failed in the TLS handshake, by door: keda or extender."
)
