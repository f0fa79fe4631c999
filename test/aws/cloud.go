package awstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/foresail/foresail/test/ports"
)

// Region is where a Cloud is unless a client says otherwise. It has the zones Region+"a", "b" and "c".
const Region = "eu-central-1"

// accountHeader tells moto whose call it is.
const accountHeader = "X-Moto-Account-Id"

// Cloud is one account of a [Moto] behind a proxy. Its methods may be called from any goroutine.
type Cloud struct {
	moto    *Moto
	account string
	address string
	forward *http.Client

	dynamoDB sync.Mutex // moto looks at the condition of a write and then writes, and two at once may both be let through

	mu     sync.Mutex
	server *http.Server // nil while the Cloud is down
	calls  []*Call
	faults []*faultState
	ec2    ec2State
	policy *Policy // nil: every call is allowed
	needed []Right // by calls since the policy is enforced
}

// Start starts a moto server with a single Cloud for a test; both end with it.
func Start(t testing.TB) *Cloud {
	t.Helper()
	return StartMoto(t).Cloud(t)
}

// Cloud starts a Cloud, an empty account, for a test and ends it with the test.
func (m *Moto) Cloud(t testing.TB) *Cloud {
	t.Helper()
	c, err := m.NewCloud()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// NewCloud starts a Cloud, an empty account. It runs until it is closed.
func (m *Moto) NewCloud() (*Cloud, error) {
	address, err := ports.TakeAddress()
	if err != nil {
		return nil, err
	}
	c := &Cloud{
		moto:    m,
		account: fmt.Sprintf("%012d", 100_000_000_000+m.accounts.Add(1)),
		address: address,
		forward: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
		ec2:     newEC2State(),
	}
	return c, c.Up()
}

// URL returns where clients find the Cloud: the endpoint of every service.
func (c *Cloud) URL() string { return "http://" + c.address }

// Account returns the id of the account.
func (c *Cloud) Account() string { return c.account }

// Config returns what clients of the SDK are made from, with fake credentials.
func (c *Cloud) Config() aws.Config {
	return aws.Config{
		Region:       Region,
		BaseEndpoint: aws.String(c.URL()),
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
}

// Direct returns what clients are made from that go around the proxy: nothing of theirs is lost, refused, hidden or recorded.
func (c *Cloud) Direct() aws.Config {
	config := c.Config()
	config.BaseEndpoint = aws.String("http://" + c.moto.address)
	config.HTTPClient = &http.Client{Transport: accountTransport(c.account)}
	return config
}

type accountTransport string

// RoundTrip reads the body first. The SDK takes its own away as soon as it has an answer, which breaks the connection if the
// transport has yet to see the body's end; it then tries again, and moto would do everything twice.
func (a accountTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(accountHeader, string(a))
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err := errors.Join(err, r.Body.Close()); err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// Environment returns the variables by which a program's SDK finds the Cloud with fake credentials, each as NAME=value.
func (c *Cloud) Environment() []string {
	return []string{
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION=" + Region, "AWS_ENDPOINT_URL=" + c.URL(),
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
		"AWS_CA_BUNDLE=",
	}
}

// Down refuses connections, and breaks those that there are, until Up. The resources remain.
func (c *Cloud) Down() {
	c.mu.Lock()
	server := c.server
	c.server = nil
	c.mu.Unlock()
	if server != nil {
		_ = server.Close() // of the listener, and there is nobody to be told
	}
}

// Up ends Down.
func (c *Cloud) Up() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.server != nil {
		return nil
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", c.address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: http.HandlerFunc(c.serve)}
	c.server = server
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			panic(err)
		}
	}()
	return nil
}

// Close ends the Cloud for good.
func (c *Cloud) Close() {
	c.Down()
	c.forward.CloseIdleConnections()
}
