package provider

import "strings"

// IDOf returns the id of the instance that a provider ID names: what is behind its last slash. The same instance may be
// named aws:///eu-west-1a/i-0123, aws:///i-0123 or aws://i-0123, as whoever sets up the kubelet has it.
func IDOf(providerID string) string {
	return providerID[strings.LastIndex(providerID, "/")+1:]
}

// Same tells whether two provider IDs name the same instance.
func Same(a, b string) bool {
	id := IDOf(a)
	return id != "" && id == IDOf(b)
}
