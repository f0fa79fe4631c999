// Package localaddr says which IP addresses lead to the node itself rather than to a pod or a
// server: no input of users may have Foresail connect to them.
package localaddr

import (
	"net"
	"net/netip"
)

// metadata are the addresses at which clouds tell machines their credentials, beyond those that are
// link-local.
var metadata = []netip.Prefix{
	netip.MustParsePrefix("168.63.129.16/32"),   // Azure
	netip.MustParsePrefix("100.100.100.200/32"), // Alibaba Cloud
	netip.MustParsePrefix("192.0.0.192/32"),     // Oracle Cloud
	netip.MustParsePrefix("fd00:ec2::/32"),      // AWS
	netip.MustParsePrefix("fd20:ce::254/128"),   // Google Cloud
}

var (
	thisHost   = netip.MustParsePrefix("0.0.0.0/8")
	translated = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48")} // NAT64
)

// Kind names what is local about an address, such as "loopback"; "" if it is an ordinary address.
func Kind(a netip.Addr) string {
	a = a.Unmap().WithZone("")
	switch {
	case !a.IsValid():
		return "invalid"
	case a.IsLoopback():
		return "loopback"
	case a.IsUnspecified(), thisHost.Contains(a):
		return "unspecified"
	case a.IsLinkLocalUnicast():
		return "link-local"
	case a.IsMulticast(), a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "multicast"
	}
	for _, p := range metadata {
		if p.Contains(a) {
			return "cloud metadata"
		}
	}
	for _, p := range translated {
		if p.Contains(a) {
			b := a.As16()
			return Kind(netip.AddrFrom4([4]byte(b[12:])))
		}
	}
	return ""
}

// Loopback returns whether a server that listens on an address, a host and a port, is reached from
// its own host alone.
func Loopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
