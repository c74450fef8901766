/** Names in the work directory of a clip. No name from outside is ever an argument of a program. */
export const workFiles = {
  input: 'in.bin',
  /** Frames of an animation that is no GIF. */
  animation: 'in.apng',
  /** A GIF that ffmpeg draws as browsers do. */
  drawnGif: 'in.gif',
  palette: 'palette.png',
  poster: 'poster.rgb',
  gif: 'out.gif',
  jpg: 'out.jpg',
  mp4: 'out.mp4',
  webm: 'out.webm',
  /** Sequence parameter sets of a copied mp4. */
  sequences: 'out.sps',
  brighterJpg: 'brighter.jpg',
  av1: 'out.av1.mp4',
  webp: 'out.webp',
  transparency: 'transparency.gray',
  clearPoster: 'poster.rgba',
  scanFrame: 'scan.jpg',
  silentMp4: 'silent.mp4',
  silentWebm: 'silent.webm',
} as const
