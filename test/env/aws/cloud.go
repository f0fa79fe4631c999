package awstest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/foresail/foresail/test/env/ports"
)

// Region is the default region of a Cloud. It has the zones Region+"a", "b" and "c".
const Region = "eu-central-1"

// accountHeader is the header with the account of a call to moto.
const accountHeader = "X-Moto-Account-Id"

// Cloud is one account of a [Moto] behind a proxy. Its methods may be called from any goroutine.
// Those that build fixtures are in fixture.go.
type Cloud struct {
	*backend
	*ec2Service
	*priceList
	*statuses
	*iam
	recorder
	faults

	fleets  *fleets
	address string

	mu     sync.Mutex
	server *http.Server // nil while the Cloud is down
}

// Start starts a moto server with one Cloud for a test; both end with it.
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
	b := &backend{
		moto: m, account: fmt.Sprintf("%012d", 100_000_000_000+m.accounts.Add(1)),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}},
	}
	service, prices := newEC2Service(b), &priceList{}
	fleets := &fleets{ec2Service: service, prices: prices, tokens: map[string]*fleet{}}
	c := &Cloud{
		backend: b, ec2Service: service, priceList: prices, statuses: &statuses{}, iam: &iam{fleets: fleets},
		fleets: fleets, address: address,
	}
	return c, c.Up()
}

// URL returns the endpoint of all services.
func (c *Cloud) URL() string { return "http://" + c.address }

// Account returns the id of the account.
func (c *Cloud) Account() string { return c.account }

// Config returns the configuration of SDK clients, with fake credentials.
func (c *Cloud) Config() aws.Config {
	return aws.Config{
		Region:       Region,
		BaseEndpoint: aws.String(c.URL()),
		Credentials:  credentials.NewStaticCredentialsProvider("test", "test", ""),
	}
}

// Direct returns the configuration of SDK clients that bypass the proxy: without faults, hidden
// instances and records.
func (c *Cloud) Direct() aws.Config {
	config := c.Config()
	config.BaseEndpoint = aws.String("http://" + c.moto.address)
	config.HTTPClient = &http.Client{Transport: accountTransport(c.account)}
	return config
}

type accountTransport string

// RoundTrip reads the body first. The SDK closes its body as soon as it has an answer, which breaks
// the connection if the transport has not read the end of the body; it would then retry, and moto
// would carry out the call twice.
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

// Environment returns variables for a program that uses the Cloud with fake credentials, each as NAME=value.
func (c *Cloud) Environment() []string {
	return []string{
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test", "AWS_REGION=" + Region, "AWS_ENDPOINT_URL=" + c.URL(),
		"AWS_EC2_METADATA_DISABLED=true", "AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
		"AWS_CA_BUNDLE=",
	}
}

// Down refuses connections and breaks existing ones until Up. The resources remain.
func (c *Cloud) Down() {
	c.mu.Lock()
	server := c.server
	c.server = nil
	c.mu.Unlock()
	if server != nil {
		_ = server.Close() // only of the listener
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
	c.client.CloseIdleConnections()
}

// serve answers a call of a client.
func (c *Cloud) serve(w http.ResponseWriter, r *http.Request) {
	body, err := readAll(r)
	if err != nil {
		return // the client is gone
	}
	call := parse(r, body)
	seen := c.begin(call)
	fault := c.match(seen)
	var reply *answer
	done := fault == nil || fault.After
	if done {
		reply = c.answer(r, &seen)
	}
	if fault != nil {
		reply = fault.answer(r, &seen)
	}
	c.end(call, seen.Params, done, reply)
	if reply == nil {
		panic(http.ErrAbortHandler) // breaks the connection
	}
	reply.writeTo(w)
}

// answer has the call's service carry it out, even if the client has gone. Only messages are not
// received without a waiting client.
func (c *Cloud) answer(r *http.Request, call *Call) *answer {
	if call.Operation != "ReceiveMessage" {
		r = r.WithContext(context.WithoutCancel(r.Context()))
	}
	if reply := c.refused(r.Context(), call); reply != nil {
		return reply
	}
	switch {
	case call.Service == EC2:
		return c.answerEC2(r.Context(), call)
	case call.Service == Pricing:
		return c.products(call)
	case strings.Contains(r.URL.Path, "/operation/"):
		return cloudWatch(r.Context(), c.backend, call)
	}
	return c.pass(r, call)
}

func (c *Cloud) answerEC2(ctx context.Context, call *Call) *answer {
	switch call.Operation {
	case "RunInstances":
		return c.runInstances(ctx, call)
	case "CreateFleet":
		return c.fleets.create(ctx, call)
	case "DescribeInstances", "TerminateInstances", "CreateTags":
		return c.instances(ctx, call)
	case "DescribeInstanceStatus":
		return c.describe(call)
	case "DescribeInstanceTypes", "DescribeInstanceTypeOfferings":
		return c.paged(ctx, call)
	case "DescribeSpotPriceHistory":
		if c.sells() {
			return c.spotPrices(call.Params)
		}
	}
	return c.query(ctx, call, EC2, call.Params)
}
