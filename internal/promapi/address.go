package promapi

import (
	"errors"
	"net/url"
	"path"
	"strings"
)

// AcceptedAddress says what an address must be.
const AcceptedAddress = "an http or https URL without user, query or fragment, such as http://prometheus.monitoring:9090"

var errAddress = errors.New("must be " + AcceptedAddress)

// ParseAddress returns the one spelling of an address. A path that could be read in two ways is refused: an address
// must not pass for another one that has credentials.
func ParseAddress(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawPath != "" ||
		strings.ContainsAny(address, "?#") {
		return "", errAddress
	}
	u.Host = strings.ToLower(u.Host)
	u.Path = strings.TrimSuffix(u.Path, "/")
	if u.Path != "" && u.Path != path.Clean(u.Path) {
		return "", errAddress
	}
	return u.String(), nil
}

// Redact leaves out of an address that is refused what might be a password.
func Redact(address string) string {
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		return "…" + address[at:]
	}
	return address
}
