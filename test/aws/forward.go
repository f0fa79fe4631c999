package awstest

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// readAll reads the body of a call, which clients of CloudWatch compress.
func readAll(r *http.Request) ([]byte, error) {
	if r.Header.Get("Content-Encoding") != "gzip" {
		return io.ReadAll(r.Body)
	}
	unzipped, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	r.Header.Del("Content-Encoding")
	return io.ReadAll(unzipped)
}

// answer has a call answered by what knows its service, whether or not the client waits for it; but a message that nobody
// waits for is not received.
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
		return c.answerCloudWatch(r.Context(), call)
	case call.Service == DynamoDB:
		c.dynamoDB.Lock()
		defer c.dynamoDB.Unlock()
	}
	return c.pass(r, call)
}

// pass has moto answer a call as it is.
func (c *Cloud) pass(r *http.Request, call *Call) *answer {
	request, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+c.moto.address+r.URL.RequestURI(), bytes.NewReader(call.Body))
	if err != nil {
		return unreachable(call, err)
	}
	request.Header = r.Header.Clone()
	request.Header.Del("Connection")
	return c.send(call, request)
}

// query has moto answer a call of the query protocol.
func (c *Cloud) query(ctx context.Context, call *Call, service string, params url.Values) *answer {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.moto.address+"/", strings.NewReader(params.Encode()))
	if err != nil {
		return unreachable(call, err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	// moto reads the region and the service from here, and looks at no signature.
	request.Header.Set("Authorization", fmt.Sprintf(
		"AWS4-HMAC-SHA256 Credential=test/20260101/%s/%s/aws4_request, SignedHeaders=host, Signature=none", call.Region, service))
	return c.send(call, request)
}

func (c *Cloud) send(call *Call, request *http.Request) *answer {
	request.Header.Set(accountHeader, c.account)
	response, err := c.forward.Do(request)
	if err != nil {
		return unreachable(call, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return unreachable(call, err)
	}
	return &answer{response.StatusCode, response.Header.Get("Content-Type"), body}
}

// unreachable is told when moto does not answer, which no test means to happen.
func unreachable(call *Call, err error) *answer {
	return failure(call, http.StatusBadGateway, "", strings.NewReplacer("<", "", "&", "").Replace(err.Error()))
}
