import { describe, expect, test } from 'vitest'
import { readFacebook } from './facebook.ts'
import { readGiphy } from './giphy.ts'
import { readImgur } from './imgur.ts'
import { readInstagram } from './instagram.ts'
import { readReddit } from './reddit.ts'
import { siteOf } from './sites.ts'
import { readStreamable } from './streamable.ts'
import { readTenor } from './tenor.ts'
import { readTwitter } from './twitter.ts'

type Shapes = [address: string, reference: unknown][]

const shapes = (name: string, read: (url: URL) => unknown, table: Shapes) =>
  describe(name, () => {
    test.each(table)('%s', (address, reference) => {
      const url = new URL(`https://${address}`)
      expect(read(url)).toEqual(reference)
      expect(siteOf(url)?.site.name).toBe(reference === undefined ? undefined : name)
    })
  })

const gif = { id: 'AbCdEf123' }
shapes('giphy', readGiphy, [
  ['giphy.com/gifs/AbCdEf123', gif],
  ['www.giphy.com/gifs/some-slug-2-AbCdEf123?utm=1', gif],
  ['giphy.com/clips/studio-slug-AbCdEf123', gif],
  ['giphy.com/stickers/slug-AbCdEf123', gif],
  ['giphy.com/embed/AbCdEf123/video', gif],
  ['media.giphy.com/media/AbCdEf123/giphy.gif', gif],
  ['media0.giphy.com/media/v1.Y2lkPTc5MGI3NjEx/AbCdEf123/giphy.mp4?cid=1', gif],
  ['media4.giphy.com/media/AbCdEf123/200w.webp', gif],
  ['i.giphy.com/AbCdEf123.gif', gif],
  ['i.giphy.com/media/AbCdEf123/source.mp4', gif],
  ['gph.is/2AbC', { short: 'https://gph.is/2AbC' }],
  ['giphy.com/', undefined],
  ['giphy.com/search/ducks', undefined],
  ['giphy.com/gifs/', undefined],
  ['developers.giphy.com/gifs/AbCdEf123', undefined],
  ['notgiphy.com/gifs/AbCdEf123', undefined],
  ['giphy.com.evil.example/gifs/AbCdEf123', undefined],
])

const image = { id: 'AbCdE12', isAlbum: false }
const album = { id: 'AbCdE', isAlbum: true }
shapes('imgur', readImgur, [
  ['imgur.com/AbCdE12', image],
  ['imgur.com/a-long-title-AbCdE12', image],
  ['www.imgur.com/AbCdE12#0', image],
  ['m.imgur.com/AbCdE12', image],
  ['i.imgur.com/AbCdE12.gif', image],
  ['i.imgur.com/AbCdE12.gifv', image],
  ['i.imgur.com/AbCdE12.jpg?1', image],
  ['imgur.com/a/AbCdE', album],
  ['imgur.com/a/title-AbCdE', album],
  ['imgur.com/gallery/AbCdE', album],
  ['imgur.com/gallery/a-title-AbCdE', album],
  ['imgur.com/t/cats/AbCdE', album],
  ['imgur.com/r/cats/AbCdE', album],
  // Already what is wanted: fetched as it is.
  ['i.imgur.com/AbCdE12.mp4', undefined],
  ['i.imgur.com/AbCdE12.webm', undefined],
  ['imgur.com/', undefined],
  ['imgur.com/upload', undefined],
  ['imgur.com/user/ada', undefined],
  ['imgur.com/t/cats', undefined],
  ['help.imgur.com/AbCdE12', undefined],
])

shapes('streamable', readStreamable, [
  ['streamable.com/abc123', 'abc123'],
  ['www.streamable.com/abc123?src=player', 'abc123'],
  ['streamable.com/e/abc123', 'abc123'],
  ['streamable.com/o/abc123', 'abc123'],
  ['streamable.com/s/abc123/xyz', 'abc123'],
  ['streamable.com/', undefined],
  ['streamable.com/login', undefined],
  ['streamable.com/a/b/c/d', undefined],
  ['cdn-cf-east.streamable.com/video/mp4/abc123.mp4', undefined],
])

const view = 'https://tenor.com/view/happy-dance-gif-12345'
shapes('tenor', readTenor, [
  ['tenor.com/view/happy-dance-gif-12345', view],
  ['www.tenor.com/view/happy-dance-gif-12345?x=1', view],
  ['tenor.com/de/view/happy-dance-gif-12345', view],
  ['tenor.com/pt-BR/view/happy-dance-gif-12345', view],
  ['tenor.com/embed/12345', 'https://tenor.com/view/12345'],
  ['tenor.com/bXyZ1.gif', 'https://tenor.com/bXyZ1.gif'],
  ['media.tenor.com/AbCAAAAC/happy.gif', undefined],
  ['media1.tenor.com/m/AbCAAAPo/happy.mp4', undefined],
  ['tenor.com/search/ducks-gifs', undefined],
  ['tenor.com/', undefined],
])

const post = { id: '1abcde' }
shapes('reddit', readReddit, [
  ['www.reddit.com/r/cats/comments/1abcde/a_cat/', post],
  ['reddit.com/r/cats/comments/1abcde', post],
  ['old.reddit.com/r/cats/comments/1abcde/a_cat/k9xyz/?context=3', post],
  ['m.reddit.com/user/ada/comments/1abcde/a_cat/', post],
  ['www.reddit.com/comments/1abcde', post],
  ['www.reddit.com/gallery/1abcde', post],
  ['redd.it/1abcde', post],
  ['v.redd.it/xyz123', { short: 'https://v.redd.it/xyz123' }],
  ['www.reddit.com/video/xyz123', { short: 'https://www.reddit.com/video/xyz123' }],
  ['www.reddit.com/r/cats/s/AbC123?x=1', { short: 'https://www.reddit.com/r/cats/s/AbC123' }],
  ['v.redd.it/xyz123/DASH_720.mp4', undefined],
  ['i.redd.it/abc.gif', undefined],
  ['www.reddit.com/r/cats/', undefined],
  ['www.reddit.com/r/cats/comments/', undefined],
  ['evilreddit.com/comments/1abcde', undefined],
])

const tweet = { id: '1234567890', video: 1 }
shapes('twitter', readTwitter, [
  ['twitter.com/ada/status/1234567890', tweet],
  ['x.com/ada/status/1234567890?s=20', tweet],
  ['mobile.twitter.com/ada/status/1234567890', tweet],
  ['www.x.com/ada/statuses/1234567890', tweet],
  ['x.com/i/status/1234567890', tweet],
  ['twitter.com/i/web/status/1234567890', tweet],
  ['x.com/ada/status/1234567890/photo/1', tweet],
  ['x.com/ada/status/1234567890/video/2', { id: '1234567890', video: 2 }],
  ['fxtwitter.com/ada/status/1234567890', tweet],
  ['vxtwitter.com/ada/status/1234567890', tweet],
  ['t.co/AbCdEf', { short: 'https://t.co/AbCdEf' }],
  ['x.com/ada', undefined],
  ['x.com/ada/status/', undefined],
  ['x.com/ada/status/12a', undefined],
  ['t.co/', undefined],
  ['video.twimg.com/ext_tw_video/1/pu/vid/720x720/a.mp4', undefined],
  ['netflix.com/ada/status/1234567890', undefined],
])

shapes('instagram', readInstagram, [
  ['www.instagram.com/p/CAbc_12-x/', 'CAbc_12-x'],
  ['instagram.com/reel/CAbc_12-x/?igsh=1', 'CAbc_12-x'],
  ['m.instagram.com/reels/CAbc_12-x', 'CAbc_12-x'],
  ['www.instagram.com/tv/CAbc_12-x/', 'CAbc_12-x'],
  ['www.instagram.com/ada/reel/CAbc_12-x/', 'CAbc_12-x'],
  ['www.instagram.com/ada/p/CAbc_12-x/', 'CAbc_12-x'],
  ['instagr.am/p/CAbc_12-x', 'CAbc_12-x'],
  ['www.instagram.com/ada/', undefined],
  ['www.instagram.com/reels/audio/123456/', undefined],
  ['www.instagram.com/', undefined],
])

const same = (address: string): [string, string] => [address, `https://${address}`]
shapes('facebook', readFacebook, [
  same('www.facebook.com/watch?v=123'),
  same('m.facebook.com/watch/?v=123'),
  same('www.facebook.com/ada/videos/123/'),
  same('www.facebook.com/ada/videos/a-title/123/'),
  same('www.facebook.com/reel/123'),
  same('www.facebook.com/share/v/AbC/'),
  same('www.facebook.com/share/r/AbC/'),
  same('fb.watch/AbC_1/'),
  [
    'www.facebook.com/plugins/video.php?href=https%3A%2F%2Fwww.facebook.com%2Fada%2Fvideos%2F123%2F&width=500',
    'https://www.facebook.com/ada/videos/123/',
  ],
  ['www.facebook.com/plugins/video.php?href=https%3A%2F%2Fevil.example%2Fada%2Fvideos%2F1', undefined],
  ['www.facebook.com/watch', undefined],
  ['www.facebook.com/ada', undefined],
  ['www.facebook.com/', undefined],
])

test.each([
  ['https://gfycat.com/AbcDefGhi', 'gfycat'],
  ['https://www.gfycat.com/gifs/detail/abcdefghi', 'gfycat'],
  ['https://gfycat.com/ifr/AbcDefGhi', 'gfycat'],
  ['https://giant.gfycat.com/AbcDefGhi.webm', 'gfycat'],
  ['https://vine.co/v/hUgLw2Ydd5a', 'vine'],
  ['https://www.vine.co/v/hUgLw2Ydd5a/embed/simple', 'vine'],
])('%s is a page of %s', (address, name) => {
  expect(siteOf(new URL(address))?.site.name).toBe(name)
})
