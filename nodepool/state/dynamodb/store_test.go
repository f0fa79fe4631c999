package dynamodb_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awsdynamodb "github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/foresail/foresail/api/v1alpha1"
	"github.com/foresail/foresail/nodepool/state"
	"github.com/foresail/foresail/nodepool/state/dynamodb"
	"github.com/foresail/foresail/nodepool/state/statetest"
	awstest "github.com/foresail/foresail/test/env/aws"
)

// endpointEnv names a DynamoDB to run the suite on, with any credentials and tables that are
// deleted again, in the place of moto: such as Amazon's own DynamoDB Local.
const endpointEnv = "FORESAIL_TEST_DYNAMODB_ENDPOINT"

func client(endpoint string, wrapped http.RoundTripper) *awsdynamodb.Client {
	return awsdynamodb.New(awsdynamodb.Options{
		Region: awstest.Region, BaseEndpoint: aws.String(endpoint), HTTPClient: &http.Client{Transport: wrapped},
		Credentials: credentials.NewStaticCredentialsProvider("test", "test", ""),
	})
}

// makeTable makes a table with a string key of some name, and perhaps a sort key, until the test ends.
func makeTable(t *testing.T, c *awsdynamodb.Client, table, hashKey string, sortKey ...string) {
	t.Helper()
	input := &awsdynamodb.CreateTableInput{TableName: &table, BillingMode: types.BillingModePayPerRequest}
	for i, name := range append([]string{hashKey}, sortKey...) {
		kind := []types.KeyType{types.KeyTypeHash, types.KeyTypeRange}[i]
		input.KeySchema = append(input.KeySchema, types.KeySchemaElement{AttributeName: &name, KeyType: kind})
		input.AttributeDefinitions = append(input.AttributeDefinitions,
			types.AttributeDefinition{AttributeName: &name, AttributeType: "S"})
	}
	_, err := c.CreateTable(t.Context(), input)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := c.DeleteTable(context.WithoutCancel(t.Context()), &awsdynamodb.DeleteTableInput{TableName: &table})
		assert.NoError(t, err)
	})
}

func TestStore(t *testing.T) {
	endpoint, transport := os.Getenv(endpointEnv), &http.Transport{MaxIdleConnsPerHost: 100}
	if endpoint == "" {
		endpoint = awstest.Start(t).URL()
	}
	statetest.Run(t, func(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper, pools ...string) state.Store {
		c := client(endpoint, wrap(transport))
		table := "suite-" + pools[0]
		makeTable(t, c, table, dynamodb.DefaultHashKey)
		return dynamodb.New(c, dynamodb.Options{Table: table})
	})
}

func TestItems(t *testing.T) {
	cloud := awstest.Start(t)
	c := client(cloud.URL(), http.DefaultTransport)
	makeTable(t, c, "autoscaler-state", "clusterId")
	store := dynamodb.New(c, dynamodb.Options{Table: "autoscaler-state", Cluster: "uid-1"})
	item := items{c, "autoscaler-state"}

	t.Run("the fields of the seeds", func(t *testing.T) { testFields(t, store, item) })
	t.Run("what others keep in an item", func(t *testing.T) { testForeign(t, store, item) })
	t.Run("cooldowns are taken over", func(t *testing.T) { testTakeOver(t, store, item) })
	t.Run("actions of others are not", func(t *testing.T) { testBusy(t, store, item) })
	t.Run("items that cannot be read", func(t *testing.T) { testBroken(t, store, item) })
	t.Run("one key for two pools", func(t *testing.T) { testSharedKey(t, c) })
	t.Run("one table for two clusters", func(t *testing.T) { testSharedTable(t, c, store) })
	t.Run("a record that is too large", func(t *testing.T) { testTooLarge(t, store) })
	t.Run("tables that will not do", func(t *testing.T) { testTables(t, c) })
	t.Run("errors of the service", func(t *testing.T) { testErrors(t, cloud, store) })
}

// items reads and writes items as other programs do.
type items struct {
	client *awsdynamodb.Client
	table  string
}

type item = map[string]types.AttributeValue

func (i items) put(t *testing.T, key string, attributes item) {
	t.Helper()
	attributes["clusterId"] = text(key)
	_, err := i.client.PutItem(t.Context(), &awsdynamodb.PutItemInput{TableName: &i.table, Item: attributes})
	require.NoError(t, err)
}

// get returns an item without its key and its journal.
func (i items) get(t *testing.T, key string) item {
	t.Helper()
	output, err := i.client.GetItem(t.Context(),
		&awsdynamodb.GetItemInput{TableName: &i.table, Key: item{"clusterId": text(key)}})
	require.NoError(t, err)
	require.Contains(t, output.Item, "journal")
	delete(output.Item, "clusterId")
	delete(output.Item, "journal")
	return output.Item
}

func text(s string) types.AttributeValue   { return &types.AttributeValueMemberS{Value: s} }
func number(s string) types.AttributeValue { return &types.AttributeValueMemberN{Value: s} }
func boolean(b bool) types.AttributeValue  { return &types.AttributeValueMemberBOOL{Value: b} }

func texts(list ...string) types.AttributeValue {
	values := []types.AttributeValue{}
	for _, s := range list {
		values = append(values, text(s))
	}
	return &types.AttributeValueMemberL{Value: values}
}

func save(t *testing.T, store state.Store, pool string, r state.Record) state.Record {
	t.Helper()
	saved, err := store.Save(t.Context(), pool, r)
	require.NoError(t, err)
	return saved
}

func testFields(t *testing.T, store state.Store, items items) {
	r := state.Record{Owner: "one", LastUp: time.Unix(300, 0).UTC(), Action: &state.Action{
		ID: "up-1", Kind: state.ActionUp, Started: time.Unix(500, 0),
		Slots: []state.Slot{{Number: 0, InstanceID: "i-0", State: state.SlotFailed}, {Number: 1},
			{Number: 2, InstanceID: "i-2"}},
	}}
	r = save(t, store, "fields", r)
	assert.Equal(t, item{
		"clusterUID": text("uid-1"), "pool": text("fields"), "version": number("1"), "leaseOwner": text("one"),
		"scalingInProgress": boolean(true), "lastScaleEpoch": number("300"),
		"scaleUpActionId": text("up-1"), "scaleUpStartedEpoch": number("500"), "scaleUpRequested": number("3"),
		"scaleUpInstanceIds": texts("i-0", "i-2"),
	}, items.get(t, "fields"))

	r.Action = &state.Action{ID: "down-1", Kind: state.ActionDown, Started: time.Unix(600, 0), Targets: []state.Removal{
		{InstanceID: "i-3", State: state.RemovalCompleted}, {InstanceID: "i-4", State: state.RemovalDraining},
	}}
	r = save(t, store, "fields", r)
	assert.Equal(t, item{
		"clusterUID": text("uid-1"), "pool": text("fields"), "version": number("2"), "leaseOwner": text("one"),
		"scalingInProgress": boolean(true), "lastScaleEpoch": number("300"),
		"scaleDownActionId": text("down-1"), "scaleDownStartedEpoch": number("600"),
		"scaleDownTargetInstanceIds": texts("i-3", "i-4"), "scaleDownCompletedInstanceIds": texts("i-3"),
	}, items.get(t, "fields"))

	r.Owner, r.Action, r.LastDown = "", nil, time.Unix(700, 0)
	save(t, store, "fields", r)
	assert.Equal(t, item{
		"clusterUID": text("uid-1"), "pool": text("fields"), "version": number("3"), "leaseOwner": text(""),
		"scalingInProgress": boolean(false), "lastScaleEpoch": number("700"),
	}, items.get(t, "fields"))
}

func testForeign(t *testing.T, store state.Store, items items) {
	items.put(t, "foreign", item{"team": text("payments"), "scalingInProgress": boolean(false)})
	r := save(t, store, "foreign", state.Record{Owner: "me"})
	save(t, store, "foreign", r)
	assert.Equal(t, item{
		"team": text("payments"), "clusterUID": text("uid-1"), "pool": text("foreign"), "version": number("2"),
		"leaseOwner": text("me"), "scalingInProgress": boolean(false),
	}, items.get(t, "foreign"))
}

func testTakeOver(t *testing.T, store state.Store, items items) {
	items.put(t, "taken-over", item{"lastScaleEpoch": number("1700000000"), "scalingInProgress": boolean(false)})
	r, err := store.Load(t.Context(), "taken-over")
	require.NoError(t, err)
	at := time.Unix(1700000000, 0).UTC()
	require.Equal(t, state.Record{LastUp: at, LastDown: at}, r)
	r = save(t, store, "taken-over", r)
	loaded, err := store.Load(t.Context(), "taken-over")
	require.NoError(t, err)
	assert.Equal(t, r, loaded)

	items.put(t, "taken-over", item{"lastScaleEpoch": text("yesterday")})
	_, err = store.Load(t.Context(), "taken-over")
	require.ErrorContains(t, err, "lastScaleEpoch: must be a number of seconds")
}

func testBusy(t *testing.T, store state.Store, items items) {
	items.put(t, "busy", item{"lastScaleEpoch": number("1700000000"), "scalingInProgress": boolean(true),
		"scaleUpActionId": text("abc")})
	_, err := store.Load(t.Context(), "busy")
	require.ErrorContains(t, err, "scalingInProgress: another autoscaler has an action open (scaleUpActionId abc)")
	// One that began after the item was loaded.
	_, err = store.Save(t.Context(), "busy", state.Record{Owner: "me"})
	require.ErrorIs(t, err, state.ErrConflict)
	items.put(t, "busy", item{})
	_, err = store.Load(t.Context(), "busy")
	require.NoError(t, err)
}

func testBroken(t *testing.T, store state.Store, items items) {
	for _, broken := range []struct {
		attributes item
		want       string
	}{
		{item{"journal": number("1"), "version": number("1")}, "journal: must be binary"},
		{item{"journal": &types.AttributeValueMemberB{Value: []byte("{")}, "version": number("1")},
			"journal: must be compressed with gzip"},
		{item{"journal": packed(t, "{"), "version": number("1")}, "decode the journal"},
		{item{"journal": packed(t, `{"version":3}`), "version": number("4")}, "version: must be that of the journal, 3"},
		{item{"journal": packed(t, `{"version":3}`)}, "version: must be that of the journal, 3"},
		{item{"version": number("4")}, "it has a version and no journal"},
		{item{"scalingInProgress": text("false")}, "scalingInProgress: another autoscaler"},
	} {
		items.put(t, "broken", broken.attributes)
		_, err := store.Load(t.Context(), "broken")
		assert.ErrorContains(t, err, "item broken of DynamoDB table autoscaler-state: "+broken.want)
		_, err = store.Save(t.Context(), "broken", state.Record{})
		assert.ErrorIs(t, err, state.ErrConflict, broken.want)
	}
}

func packed(t *testing.T, journal string) types.AttributeValue {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write([]byte(journal))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return &types.AttributeValueMemberB{Value: out.Bytes()}
}

// testSharedKey has two pools configured with the same key.
func testSharedKey(t *testing.T, c *awsdynamodb.Client) {
	store := dynamodb.New(c, dynamodb.Options{Table: "autoscaler-state", Key: "shared"})
	r := save(t, store, "a", state.Record{Owner: "a"})
	_, err := store.Load(t.Context(), "b")
	require.ErrorContains(t, err, "it belongs to pool a")
	for _, version := range []int64{0, r.Version} {
		_, err = store.Save(t.Context(), "b", state.Record{Version: version, Owner: "b"})
		require.ErrorIs(t, err, state.ErrConflict)
	}
	loaded, err := store.Load(t.Context(), "a")
	require.NoError(t, err)
	assert.Equal(t, r, loaded)
}

// testSharedTable has a pool of the same name in another cluster.
func testSharedTable(t *testing.T, c *awsdynamodb.Client, store state.Store) {
	r := save(t, store, "namesake", state.Record{Owner: "a"})
	other := dynamodb.New(c, dynamodb.Options{Table: "autoscaler-state", Cluster: "uid-2"})
	_, err := other.Load(t.Context(), "namesake")
	require.ErrorContains(t, err, "it belongs to cluster uid-1, and this is uid-2: use another state.dynamodb.key")
	for _, version := range []int64{0, r.Version} {
		_, err = other.Save(t.Context(), "namesake", state.Record{Version: version, Owner: "b"})
		require.ErrorIs(t, err, state.ErrConflict)
	}
	loaded, err := store.Load(t.Context(), "namesake")
	require.NoError(t, err)
	assert.Equal(t, r, loaded)
}

func testTooLarge(t *testing.T, store state.Store) {
	noise := rand.New(rand.NewPCG(1, 1)) // which does not compress
	r := state.Record{}
	for range 40_000 {
		r.PendingTerminations = append(r.PendingTerminations,
			state.PendingTermination{InstanceID: fmt.Sprintf("i-%016x", noise.Uint64())})
	}
	_, err := store.Save(t.Context(), "large", r)
	require.ErrorIs(t, err, state.ErrTooLarge)
	loaded, err := store.Load(t.Context(), "large")
	require.NoError(t, err)
	assert.Equal(t, state.Record{}, loaded)
}

func testTables(t *testing.T, c *awsdynamodb.Client) {
	makeTable(t, c, "other-key", "id")
	makeTable(t, c, "sorted", "clusterId", "at")
	for _, table := range []string{"missing", "other-key", "sorted"} {
		store := dynamodb.New(c, dynamodb.Options{Table: table})
		_, err := store.Load(t.Context(), "workers")
		assert.ErrorContains(t, err, "item workers of DynamoDB table "+table+": ")
		assert.ErrorContains(t, err, "must be a table whose partition key is the string clusterId, without a sort key")
		_, err = store.Save(t.Context(), "workers", state.Record{})
		assert.ErrorContains(t, err, "must be a table whose partition key is the string clusterId, without a sort key")
		assert.NotErrorIs(t, err, state.ErrConflict)
	}
	store := dynamodb.New(c, dynamodb.Options{Table: "other-key", HashKey: "id"})
	save(t, store, "workers", state.Record{})
}

func testErrors(t *testing.T, cloud *awstest.Cloud, store state.Store) {
	r := save(t, store, "errors", state.Record{})
	for _, effect := range []awstest.Effect{awstest.Fail, awstest.Throttle, awstest.Drop} {
		cloud.Forget()
		remove := cloud.Inject(awstest.Fault{Service: awstest.DynamoDB, Operation: "UpdateItem", Do: effect})
		_, err := store.Save(t.Context(), "errors", r)
		remove()
		require.Error(t, err)
		require.NotErrorIs(t, err, state.ErrConflict)
		require.Len(t, cloud.Calls("UpdateItem"), 1, "it is tried once")
	}
	cloud.Forget()
	loaded, err := store.Load(t.Context(), "errors")
	require.NoError(t, err)
	require.Equal(t, r, loaded)
	calls := cloud.Calls("GetItem")
	require.Len(t, calls, 1)
	assert.Contains(t, string(calls[0].Body), `"ConsistentRead":true`)
}

func TestConnectTakesWhatTheSpecSays(t *testing.T) {
	cloud := awstest.Start(t)
	makeTable(t, client(cloud.URL(), http.DefaultTransport), "autoscaler-state", "cluster_id")
	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", cloud.URL())
	t.Setenv("AWS_ACCESS_KEY_ID", "test")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "test")
	t.Setenv("AWS_CONFIG_FILE", "/dev/null")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
	store, err := dynamodb.Connect(t.Context(), v1alpha1.DynamoDBState{
		Table: "autoscaler-state", HashKey: "cluster_id", Key: "node-fleet",
	}, awstest.Region, "uid-1")
	require.NoError(t, err)
	r := save(t, store, "workers", state.Record{Owner: "me"})
	loaded, err := store.Load(t.Context(), "workers")
	require.NoError(t, err)
	assert.Equal(t, r, loaded)
	assert.Contains(t, string(cloud.Calls("GetItem")[0].Body), "node-fleet")
}
