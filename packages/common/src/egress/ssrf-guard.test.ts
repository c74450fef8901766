import { networkInterfaces } from 'node:os'
import { describe, expect, test } from 'vitest'
import { createGuard } from './ssrf-guard.ts'

const web = { hostname: 'media.example', port: 443 }
const forbidden = expect.objectContaining({ code: 'egress_refused' })

describe('addresses', () => {
  test.each([
    ...['8.8.8.8', '1.1.1.1', '93.184.216.34', '172.15.255.255', '172.32.0.1', '100.63.255.255', '100.128.0.1'],
    ...['126.255.255.255', '128.0.0.1', '11.0.0.1', '192.167.255.255', '192.169.0.1', '198.17.255.255', '198.20.0.1'],
    ...['169.253.255.255', '169.255.0.1', '223.255.255.255', '168.63.129.15', '168.63.129.17'],
    ...['2606:4700::1111', '2001:4860:4860::8888', '2a00:1450:4001:800::200e', '2400:cb00::1', '::ffff:8.8.8.8'],
  ])('%s is public', (address) => {
    expect(createGuard().permits(web, address)).toBe(true)
  })

  test.each([
    ...[
      '127.0.0.1',
      '127.255.255.254',
      '::1',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '::127.0.0.1',
      '::ffff:0:127.0.0.1',
    ],
    ...['0.0.0.0', '0.1.2.3', '::', '10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1'],
    ...[
      '192.168.255.255',
      '::ffff:10.0.0.1',
      '::ffff:c0a8:1',
      '169.254.169.254',
      '169.254.0.1',
      '::ffff:169.254.169.254',
    ],
    ...[
      'fe80::1',
      'fe80::1%eth0',
      'febf::1',
      '100.64.0.1',
      '100.100.100.200',
      '100.127.255.255',
      '224.0.0.1',
      '239.1.1.1',
    ],
    ...['ff02::1', 'ff0e::1', '255.255.255.255', '240.0.0.1', '192.0.0.1', '192.0.0.170', '192.0.2.1', '192.88.99.1'],
    ...['198.18.0.1', '198.19.255.255', '198.51.100.7', '203.0.113.9', '192.175.48.1', '192.31.196.1', '192.52.193.1'],
    ...['168.63.129.16', '::ffff:168.63.129.16', '2001:db8::1', '3fff::1', 'fc00::1', 'fd00:ec2::254', 'fdff::1'],
    ...['64:ff9b::7f00:1', '64:ff9b::8.8.8.8', '64:ff9b:1::1', '2002:7f00:1::', '2002:808:808::1', '2001:0:1::1'],
    ...['2001:2::1', '2001:3::1', '2001:10::1', '2001:20::1', '2001:30::1', 'fec0::1', '100::1', '100:0:0:1::1'],
    ...['5f00::1', '4000::1', '8000::1', '1000::1', 'e000::1', '1fff:ffff::1'],
  ])('%s is refused', (address) => {
    expect(createGuard().permits(web, address)).toBe(false)
  })

  test.each([
    '',
    'localhost',
    '127.1',
    '0177.0.0.1',
    '0x7f000001',
    '2130706433',
    '8.8.8.8:80',
    '[::1]',
    '8.8.8',
    '08.8.8.8',
  ])('what is no canonical address is refused: "%s"', (text) => {
    expect(createGuard({ allowCidrs: ['0.0.0.0/0', '::/0'] }).permits(web, text)).toBe(false)
  })
})

describe('exceptions', () => {
  const guard = createGuard({ allowCidrs: ['127.0.0.0/8', 'fd00:1::/32'], denyCidrs: ['127.6.6.0/24', '9.0.0.0/8'] })

  test.each([
    ['127.0.0.1', true],
    ['::ffff:127.0.0.1', true],
    ['fd00:1::5', true],
    ['fd00:2::5', false],
    ['::1', false],
    ['10.0.0.1', false],
    ['127.6.6.6', false],
    ['9.9.9.9', false],
    ['8.8.8.8', true],
  ])('allow 127/8 and fd00:1::/32, deny 127.6.6/24 and 9/8: %s is %s', (address, expected) => {
    expect(guard.permits(web, address)).toBe(expected)
  })

  test('inside an exception any port and any name is fine, outside neither', () => {
    expect(guard.permits({ hostname: 'files', port: 9000 }, '127.0.0.1')).toBe(true)
    expect(guard.permits({ hostname: 'files', port: 80 }, '8.8.8.8')).toBe(false)
    expect(guard.permits({ hostname: 'media.example', port: 9000 }, '8.8.8.8')).toBe(false)
    expect(guard.permits({ hostname: 'db.internal', port: 443 }, '8.8.8.8')).toBe(false)
  })

  test('a mistyped network stops the start', () => {
    expect(() => createGuard({ allowCidrs: ['10.0.0.0/33'] })).toThrow('not a CIDR: 10.0.0.0/33')
    expect(() => createGuard({ denyCidrs: ['10.0.0.0'] })).toThrow('not a CIDR')
  })
})

describe('URLs', () => {
  test.each([
    ...['https://example.com/a.gif', 'http://example.com:80/a'],
    ...['http://8.8.8.8/', 'http://[2606:4700::1111]/', 'https://example.com./a', 'https://bücher.example/ä.gif'],
    ...[
      'http://example.com\\@127.0.0.1/',
      'https://internal.example.com/',
      'https://local/../'.replace('local', 'a.b'),
    ],
  ])('%s may be fetched', (text) => {
    expect(createGuard().parseUrl(text).protocol).toMatch(/^https?:$/)
  })

  test.each([
    ...[
      '',
      'example.com/a.gif',
      '//example.com/a',
      'file:///etc/passwd',
      'ftp://example.com/',
      'gopher://example.com/',
    ],
    ...['data:image/gif;base64,R0lGOD', 'javascript:alert(1)', 'blob:https://example.com/1', 'ws://example.com/'],
    ...[
      'http://user@example.com/',
      'http://user:secret@example.com/',
      'http://:secret@example.com/',
      'http://a%2f@b.example/',
    ],
    ...[
      'http://example.com:8080/',
      'https://example.com:8443/',
      'http://example.com:22/',
      'http://example.com:0/',
      'http://example.com:6379/',
      'https://example.com:5432/',
    ],
    ...['http://localhost/', 'http://LOCALHOST/', 'http://localhost./', 'http://a.localhost/', 'http://printer.local/'],
    ...[
      'http://metadata.google.internal/',
      'http://metadata.google.internal./',
      'http://x.home.arpa/',
      'http://x.onion/',
    ],
    ...[
      'http://intranet/',
      'http://127.0.0.1/',
      'http://127.0.0.1./',
      'http://2130706433/',
      'http://0x7f.1/',
      'http://0x7f000001/',
    ],
    ...[
      'http://0177.0.0.1/',
      'http://017700000001/',
      'http://127.1/',
      'http://0/',
      'http://①②⑦.⓪.⓪.①/',
      'http://127。0。0。1/',
    ],
    ...[
      'http://[::1]/',
      'http://[::]/',
      'http://[::ffff:127.0.0.1]/',
      'http://[::ffff:7f00:1]/',
      'http://[64:ff9b::7f00:1]/',
    ],
    ...[
      'http://[fd00:ec2::254]/',
      'http://169.254.169.254/latest/meta-data/',
      'http://2852039166/',
      'http://168.63.129.16/',
    ],
    ...[
      'http://example.com@127.0.0.1/',
      'http:\\\\127.0.0.1\\',
      'http:127.0.0.1',
      ' http://127.0.0.1/',
      'http://%31%32%37.0.0.1/',
    ],
    ...[
      'http://[fe80::1%25eth0]/',
      'http://exa mple.com/',
      'http://8.8.8.8:22/',
      `https://example.com/${'a'.repeat(2048)}`,
    ],
  ])('%s is refused before any look-up', (text) => {
    expect(() => createGuard().parseUrl(text)).toThrow(forbidden)
  })

  test('only the ports that the operator names are open', () => {
    const guard = createGuard({ ports: [443, 8443] })
    expect(guard.parseUrl('https://example.com:8443/').port).toBe('8443')
    for (const text of ['http://example.com/', 'https://example.com:8080/']) {
      expect(() => guard.parseUrl(text)).toThrow(forbidden)
    }
    expect(guard.permits({ hostname: 'media.example', port: 8443 }, '8.8.8.8')).toBe(true)
    expect(guard.permits({ hostname: 'media.example', port: 80 }, '8.8.8.8')).toBe(false)
  })

  test('its own port on this machine is the service itself, however the address is spelled', () => {
    const guard = createGuard({ ownPort: 8082, allowCidrs: ['0.0.0.0/0', '::/0'] })
    const own = Object.values(networkInterfaces()).flatMap((card) => card?.map(({ address }) => address) ?? [])
    for (const address of ['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1', '0.0.0.0', '::', ...own]) {
      expect([address, guard.permits({ hostname: 'alias.example', port: 8082 }, address)]).toEqual([address, false])
      expect(guard.permits({ hostname: 'alias.example', port: 8083 }, address)).toBe(true)
    }
    expect(guard.permits({ hostname: 'alias.example', port: 8082 }, '8.8.8.8')).toBe(true)
  })

  test('the service is no source of itself, whatever the port and the spelling of its name', () => {
    const ownUrls = ['https://media.example/path', 'http://127.0.0.1:8082']
    const guard = createGuard({ ownUrls, allowCidrs: ['127.0.0.0/8'], ports: [80, 443, 8443] })
    for (const text of [
      ...['https://media.example/f/00000000.mp4', 'http://MEDIA.example./', 'https://media.example:8443/'],
      'http://127.0.0.1:8082/f/00000000.mp4',
    ]) {
      expect(() => guard.parseUrl(text)).toThrow(forbidden)
    }
    expect(() => guard.parseUrl('//media.example/', new URL('https://example.com/'))).toThrow(forbidden)
    for (const text of ['https://other.media.example/', 'http://127.0.0.1:9000/']) {
      expect(guard.parseUrl(text).href).toBe(text)
    }
  })

  test('a short URL that grows past the limit when it is normalised is refused', () => {
    expect(() => createGuard().parseUrl(`https://example.com/${'ä'.repeat(1000)}`)).toThrow(forbidden)
  })

  test('a redirect is resolved against the page it came from, and judged like any other URL', () => {
    const guard = createGuard()
    const base = new URL('https://example.com/a/b')
    expect(guard.parseUrl('../c.gif', base).href).toBe('https://example.com/c.gif')
    expect(guard.parseUrl('//cdn.example.com/c.gif', base).href).toBe('https://cdn.example.com/c.gif')
    expect(() => guard.parseUrl('//127.0.0.1/c.gif', base)).toThrow(forbidden)
    expect(() => guard.parseUrl('file:///etc/passwd', base)).toThrow(forbidden)
  })

  test('with exceptions, an odd port or an inner name waits for the look-up; a literal is decided at once', () => {
    const guard = createGuard({ allowCidrs: ['127.0.0.0/8'] })
    expect(guard.parseUrl('http://127.0.0.1:9999/').port).toBe('9999')
    expect(guard.parseUrl('http://localhost:9999/').hostname).toBe('localhost')
    expect(() => guard.parseUrl('http://10.0.0.1/')).toThrow(forbidden)
    expect(() => guard.parseUrl('http://8.8.8.8:9999/')).toThrow(forbidden)
  })

  test('where TLS is required, plain http is open inside an exception only', () => {
    const guard = createGuard({ requiresTls: true, allowCidrs: ['10.0.0.0/8'], ports: 'any' })
    expect(guard.parseUrl('http://10.1.2.3:8080/realm').port).toBe('8080')
    expect(guard.parseUrl('https://login.example.com:8443/').port).toBe('8443')
    expect(() => guard.parseUrl('http://8.8.8.8/')).toThrow(forbidden)
    const plain = { hostname: 'login.example.com', port: 80, isPlain: true }
    expect(guard.permits(plain, '10.1.2.3')).toBe(true)
    expect(guard.permits(plain, '8.8.8.8')).toBe(false)
    expect(guard.permits({ ...plain, isPlain: false }, '8.8.8.8')).toBe(true)
    expect(() => createGuard({ requiresTls: true }).parseUrl('http://login.example.com/')).toThrow(
      expect.objectContaining({ refusal: 'scheme' }),
    )
  })
})
