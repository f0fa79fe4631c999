package serve

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	certutil "k8s.io/client-go/util/cert"

	"github.com/foresail/foresail/internal/cli/clitest"
)

func TestFlagsOfForwardingAreChecked(t *testing.T) {
	cert, _, err := certutil.GenerateSelfSignedCertKey("second", nil, nil)
	require.NoError(t, err)
	ca := "--forward-ca-file=" + clitest.File(t, "ca.crt", string(cert))
	const accept = ": must be https, a host and perhaps a port, such as "
	for _, c := range []struct {
		args []string
		want string // "" accepts
	}{
		{nil, ""},
		{[]string{"--forward-url=https://second.example.svc", ca}, ""},
		{[]string{"--forward-url=https://second.example.svc:8443/", ca}, ""},
		{[]string{"--forward-url=https://10.0.0.1:8443", ca}, ""},
		{[]string{"--forward-url=https://[fd00::1]:8443", ca}, ""},
		{[]string{"--forward-url=https://second.example.svc", "--forward-insecure-skip-tls-verify"}, ""},
		{[]string{"--forward-url=http://second.example.svc", ca},
			`--forward-url: "http://second.example.svc"` + accept},
		{[]string{"--forward-url=second.example.svc:443", ca}, `--forward-url: "second.example.svc:443"` + accept},
		{[]string{"--forward-url=https://", ca}, `--forward-url: "https:"` + accept},
		{[]string{"--forward-url=https://second/apis", ca}, `--forward-url: "https://second/apis"` + accept},
		{[]string{"--forward-url=https://second?a=b", ca}, `--forward-url: "https://second?a=b"` + accept},
		{[]string{"--forward-url=https://me:secret@second", ca}, `--forward-url: "https://me:xxxxx@second"` + accept},
		{[]string{"--forward-url=https://me:sec%zzret@second", ca},
			`--forward-url: (not shown, as it may hold a password)` + accept},
		{[]string{"--forward-url=https://second:0", ca}, `--forward-url: "https://second:0"` + accept},
		{[]string{"--forward-url=https://sec_ond", ca}, `--forward-url: "https://sec_ond"` + accept},
		{[]string{"--forward-url=https://foresail.foresail-system.svc:443", ca},
			`--forward-url: "https://foresail.foresail-system.svc:443": must be another server than Foresail itself`},
		{[]string{"--forward-url=https://foresail.foresail-system.svc.cluster.local", ca},
			`must be another server than Foresail itself`},
		{[]string{"--forward-url=https://second"},
			`--forward-ca-file: "": must be a file in PEM, or left out with --forward-insecure-skip-tls-verify`},
		{[]string{"--forward-url=https://second", "--forward-ca-file=/none"},
			`--forward-ca-file: "/none": must be a file with certificates in PEM: open /none`},
		{[]string{"--forward-url=https://second", "--forward-ca-file=" + clitest.File(t, "empty", "")},
			`has no certificate in PEM`},
		{[]string{"--forward-url=https://second", ca, "--forward-insecure-skip-tls-verify"},
			"--forward-insecure-skip-tls-verify: true: must be left out with --forward-ca-file"},
		{[]string{ca}, "must be left out without --forward-url"},
		{[]string{"--forward-insecure-skip-tls-verify"},
			"--forward-insecure-skip-tls-verify: true: must be left out without --forward-url"},
	} {
		o := parsedRun(t, append([]string{"--leader-elect=false", "--foresail-namespace=foresail-system"},
			c.args...)...)
		if c.want == "" {
			assert.NoError(t, o.validate(), c.args)
		} else {
			assert.ErrorContains(t, o.validate(), c.want, c.args)
		}
	}
	for text, want := range map[string]string{
		"https://second.example.svc": "second.example.svc:443", "https://second:8443/": "second:8443",
		"https://[fd00::1]": "[fd00::1]:443",
	} {
		host, err := forwardHost(text)
		require.NoError(t, err)
		assert.Equal(t, want, host)
	}
}
