import { expect, onTestFinished, test, vi } from 'vitest'
import { readDash } from './dash.ts'

const URL = 'https://site.example/a/list.mpd'
const limits = { seconds: 30, pieces: 200 }
const unsupported = (reason: string) => ({ code: 'unsupported_site_content', details: { reason } })
const mpd = (inside: string, attributes = 'type="static" mediaPresentationDuration="PT2S"') =>
  `<MPD ${attributes}><Period>${inside}</Period></MPD>`
const set = (inside: string, attributes = 'mimeType="video/mp4"', more = '') =>
  `<AdaptationSet>${more}<Representation id="1" bandwidth="1" ${attributes}>${inside}</Representation></AdaptationSet>`
const file = (name: string, attributes?: string) => set(`<BaseURL>${name}</BaseURL>`, attributes)
const template = (attributes: string) => set(`<SegmentTemplate media="p$Number$" startNumber="1" ${attributes}/>`)
const read = (text: string) => readDash(text, URL, limits)
const tracks = (...names: string[]) => ({
  tracks: names.map((name) => ({ pieces: [{ url: `https://site.example/a/${name}` }] })),
})

test('the best picture up to 1080p and the best sound are chosen', () => {
  const size = (width: number, height: number) => `mimeType="video/mp4" width="${width}" height="${height}"`
  const text = mpd(
    [
      file('huge', size(3840, 2160)),
      file('small', size(640, 360)),
      file('tall', size(1080, 1920)),
      file('low', 'mimeType="audio/mp4"'),
      file('high', 'mimeType="audio/mp4" bandwidth="2"').replace('bandwidth="1" ', ''),
    ].join(''),
  )
  expect(read(text)).toEqual(tracks('tall', 'high'))
})

test('mp4 pictures are preferred to webm, with sound of the same kind', () => {
  const [mp4, webm] = [file('v.mp4'), file('v.webm', 'mimeType="video/webm" width="9" height="9"')]
  const sounds = file('a.webm', 'mimeType="audio/webm"') + file('a.mp4', 'mimeType="audio/mp4"')
  expect(read(mpd(webm + mp4 + sounds))).toEqual(tracks('v.mp4', 'a.mp4'))
  expect(read(mpd(webm + sounds))).toEqual(tracks('v.webm', 'a.webm'))
})

test('a file with its index inside is one piece', () => {
  const indexed = set(
    '<BaseURL>v.mp4</BaseURL><SegmentBase indexRange="8-9"><Initialization range="0-7"/></SegmentBase>',
  )
  expect(read(mpd(indexed))).toEqual(tracks('v.mp4'))
})

test.each([
  ['31 seconds', mpd(file('p'), 'mediaPresentationDuration="PT31S"'), { code: 'duration_exceeded' }],
  [
    'segments of 31 seconds in 2',
    mpd(
      set('<SegmentTemplate media="p$Number$"><SegmentTimeline><S t="0" d="31"/></SegmentTimeline></SegmentTemplate>'),
    ),
    { code: 'duration_exceeded' },
  ],
  ['a live stream', mpd(template('duration="1"'), 'type="dynamic"'), unsupported('live')],
  ['10,000 segments', mpd(template('duration="1" timescale="5000"')), unsupported('too_many_segments')],
  [
    'a key',
    mpd(
      set(
        '<BaseURL>p</BaseURL>',
        'mimeType="video/mp4"',
        '<ContentProtection schemeIdUri="urn:uuid:1077efec-c0b2-4d02-ace3-3c1e52e2fb4b"/>',
      ),
    ),
    unsupported('encrypted'),
  ],
  ['two periods', mpd(`${file('p')}</Period><Period start="PT1S">${file('p')}`), unsupported('discontinuous')],
  ['no picture', mpd(file('p', 'mimeType="audio/mp4"')), unsupported('empty')],
])('refused: %s', (_, text, refusal) => {
  expect(() => read(text)).toThrow(expect.objectContaining(refusal))
})

test.each([
  ['of a file', '<!DOCTYPE MPD [<!ENTITY x SYSTEM "file:///etc/hostname">]>'],
  ['of an address', '<!DOCTYPE MPD SYSTEM "http://127.0.0.1:1/x.dtd">'],
  ['of entities', `<!DOCTYPE MPD [<!ENTITY a "aaaaaaaa"><!ENTITY x "${'&a;'.repeat(9_000)}">]>`],
])('an entity %s stays what it is called', (_, doctype) => {
  // The parser's complaints.
  const complaints = vi.spyOn(console, 'error').mockImplementation(() => {})
  onTestFinished(() => complaints.mockRestore())
  expect(read(`<?xml version="1.0"?>${doctype}${mpd(file('&x;'))}`)).toEqual(tracks('&x;'))
})
