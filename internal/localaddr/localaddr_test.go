package localaddr

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestKind(t *testing.T) {
	for address, want := range map[string]string{
		"127.0.0.1": "loopback", "127.255.0.9": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback",
		"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "::": "unspecified",
		"169.254.169.254": "link-local", "169.254.170.2": "link-local", "fe80::1": "link-local",
		"fe80::1%eth0":           "link-local",
		"::ffff:169.254.169.254": "link-local",
		"fd00:ec2::254":          "cloud metadata", "fd20:ce::254": "cloud metadata", "168.63.129.16": "cloud metadata",
		"100.100.100.200": "cloud metadata", "192.0.0.192": "cloud metadata",
		"64:ff9b::169.254.169.254": "link-local", "64:ff9b::127.0.0.1": "loopback",
		"224.0.0.1": "multicast", "255.255.255.255": "multicast", "ff02::1": "multicast",
		"10.0.0.1": "", "192.168.1.1": "", "100.64.0.1": "", "172.16.0.1": "", "8.8.8.8": "", "fd12::1": "",
		"2001:db8::1": "", "64:ff9b::10.0.0.1": "",
	} {
		assert.Equal(t, want, Kind(netip.MustParseAddr(address)), address)
	}
	assert.Equal(t, "invalid", Kind(netip.Addr{}))
}

func TestLoopback(t *testing.T) {
	for _, address := range []string{"127.0.0.1:9600", "127.9.9.9:1", "[::1]:9600", "localhost:9600"} {
		assert.True(t, Loopback(address), address)
	}
	for _, address := range []string{":9600", "0.0.0.0:9600", "[::]:9600", "10.0.0.1:9600", "example.com:9600",
		"127.0.0.1", ""} {
		assert.False(t, Loopback(address), address)
	}
}
