const path = process.argv[2], file = process.argv[3];
const github = require(path + '/node_modules/@actions/github');
github.context.payload = {head_commit: {id: 'abc', message: 'm', url: 'u', timestamp: 't', author: {}, committer: {}}};
require(path + '/dist/src/extract.js').extractResult({tool: 'customSmallerIsBetter', outputFilePath: file})
  .then((result) => console.log(JSON.stringify(result.benches)), (error) => { console.error(String(error)); process.exit(1); });
