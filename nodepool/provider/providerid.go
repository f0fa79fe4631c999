package provider

import "strings"

// IDOf returns the instance id in a provider ID: the part after its last slash. The same instance may be named
// aws:///eu-west-1a/i-0123, aws:///i-0123 or aws://i-0123, depending on the kubelet's configuration.
func IDOf(providerID string) string {
	return providerID[strings.LastIndex(providerID, "/")+1:]
}

// Same reports whether two provider IDs name the same instance.
func Same(a, b string) bool {
	id := IDOf(a)
	return id != "" && id == IDOf(b)
}
